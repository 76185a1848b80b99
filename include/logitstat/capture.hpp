#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "logitstat/capture/row_scorer.hpp"
#include "logitstat/capture/run_metadata.hpp"
#include "logitstat/capture/score_row.hpp"
#include "logitstat/capture/trace_builder.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/output_file.hpp"
#include "logitstat/io/text_lines.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/trace/concatenate.hpp"

/// From a harness's logits to a trace file:
///
///     logitstat::TraceRecorder trace("rocm.tsv", {.top_k = 8}, logitstat::RunMetadata{.model = "some-4bit"});
///     trace.record(chunk, pos, target, logits);   // once a position
///     trace.close();
///
/// `capture/score_row.hpp` (one row) and `capture/trace_builder.hpp` (a trace in memory) are the same without a file.
namespace logitstat {

/// The format of a recorded trace file.
enum class trace_format {
    automatic, ///< by the extension: binary for `.safetensors`, else text
    text,      ///< NLLs and logits with six decimals
    binary     ///< NLLs and logits as they are
};

/// The type of NLLs and logits in a binary trace.
enum class binary_real {
    automatic, ///< float64 when the first row is of double, else float32; a later row of double is then refused
    float32,   ///< doubles are rounded
    float64    ///< floats are widened, exactly
};

/// What a TraceRecorder keeps of each row, and in which form.
struct RecorderOptions {
    std::size_t top_k = 8;                                ///< candidates a position, 2 to V
    trace_format format = trace_format::automatic;        ///< of PATH; PATH.partial is always text
    non_finite_rows non_finite = non_finite_rows::refuse; ///< rows that a trace cannot hold
    binary_real real = binary_real::automatic;            ///< of no effect on a text trace
    bool replace_partial = false; ///< drop a PATH.partial that is there, the rows of an earlier run
};

/// Records one trace. Each row is scored and appended, whole and flushed, to PATH.partial, a text trace (for a binary
/// trace with the shortest decimals that read back as the same double); `close` makes PATH of it.
///
/// A run that ends without `close`, killed or by an exception, leaves PATH.partial: `read_trace(path, {.recover =
/// true})` reads the rows up to there. A previous PATH keeps its content until `close`. A previous PATH.partial is
/// refused unless RecorderOptions::replace_partial is set: it holds what a killed run left, or another recorder is
/// writing it. Movable, not copyable. One thread a recorder: threads record apart, each its own chunks, and
/// `concatenate` joins them.
class TraceRecorder {
  public:
    /// Throws std::invalid_argument for top_k < 2, an empty path or metadata that a trace cannot hold, io_error when
    /// PATH is a directory, a device or a pipe, or PATH.partial is there or cannot be written.
    TraceRecorder(const std::filesystem::path& path, RecorderOptions options, const Metadata& metadata = {})
        : options_(options), scorer_(options.top_k, options.non_finite), target_(file_behind(path)),
          partial_(target_.string() + ".partial") {
        if (options_.format == trace_format::automatic) {
            options_.format = path.extension() == ".safetensors" ? trace_format::binary : trace_format::text;
        }
        const std::string preamble = detail::preamble_text(TraceSource{.metadata = metadata});
        create_partial();
        errno = 0;
        stream_ = std::make_unique<std::ofstream>(partial_, std::ios::binary);
        if (!*stream_) { fail_to_write(""); }
        write(preamble, "");
    }

    /// The same with the lines made from what the harness knows.
    TraceRecorder(const std::filesystem::path& path, RecorderOptions options, const RunMetadata& run)
        : TraceRecorder(path, options, run.metadata(options.top_k)) {}

    /// The recorder that was moved from is closed: it takes no row, and its `close` does nothing.
    TraceRecorder(TraceRecorder&&) = default;
    /// The same. What the recorder on the left had recorded without `close` stays as its PATH.partial.
    TraceRecorder& operator=(TraceRecorder&&) = default;

    /// Records one position: `logits` is the model's row of V logits (std::span, std::vector, an Eigen row or vector;
    /// of float, double, Eigen::half or Eigen::bfloat16), `target` the token that the corpus has there. O(V).
    ///
    /// Throws std::invalid_argument, naming chunk and pos, when (chunk, pos) does not lie above the row before, target
    /// not in [0, V), top_k is above V, V or (in a binary trace) the type of the row changes so that something would be
    /// lost, or the row cannot be held by a trace (see non_finite_rows); the recorder is then as before. Throws
    /// io_error when the row cannot be written: PATH.partial may then end inside a line and takes no more rows.
    template <class Arch = simd::preferred_arch, logits_row L>
    void record(std::int64_t chunk, std::int64_t pos, std::int64_t target, const L& logits) {
        if (stream_ == nullptr || !stream_->is_open()) {
            throw std::invalid_argument("record: the recorder is closed");
        }
        if (failed_) { throw io_error(partial_.string(), "takes no more rows: a row could not be written"); }
        detail::with_span(logits, [&](auto row) {
            using T = std::remove_const_t<typename decltype(row)::element_type>;
            const binary_real real = real_for<T>(chunk, pos);
            const RowScore score = scorer_.score<Arch>(chunk, pos, target, row, real == binary_real::float32);
            format_row(chunk, pos, target, score, real);
            write(line_, " the row of " + detail::RowScorer::place(chunk, pos));
            scorer_.accept(chunk, pos, row.size());
            real_ = real;
            ++rows_;
        });
    }

    /// Makes the trace file and removes PATH.partial. A second call does nothing. Throws std::invalid_argument when no
    /// row was recorded (and leaves nothing), io_error when PATH cannot be written (and leaves PATH.partial; it may be
    /// called again).
    void close() {
        if (stream_ == nullptr) { return; }
        if (failed_) { throw io_error(partial_.string(), "is no complete trace: a row could not be written"); }
        errno = 0;
        if (stream_->is_open()) { stream_->close(); }
        if (!*stream_) { fail_to_write(""); }
        if (rows_ == 0) {
            stream_.reset();
            std::filesystem::remove(partial_);
            throw std::invalid_argument(target_.string() + ": no row was recorded");
        }
        std::error_code error;
        if (options_.format == trace_format::text) {
            std::filesystem::rename(partial_, target_, error);
            if (error) { throw io_error(target_.string(), "cannot write: " + error.message()); }
        } else {
            real_ == binary_real::float64 ? write_binary<double>() : write_binary<float>();
            std::filesystem::remove(partial_, error);
        }
        stream_.reset();
    }

    std::size_t rows() const noexcept { return rows_; } ///< recorded so far
    /// Where the rows are until `close`.
    const std::filesystem::path& partial_path() const noexcept { return partial_; }

  private:
    /// The regular file that is to appear: symbolic links are followed, so that they stay what they are.
    static std::filesystem::path file_behind(const std::filesystem::path& path) {
        if (path.empty()) { throw std::invalid_argument("a trace needs a file name"); }
        std::error_code ignored;
        const auto status = std::filesystem::status(path, ignored);
        if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
            throw io_error(path.string(), "cannot write: it is not a regular file");
        }
        return std::filesystem::absolute(detail::behind_symbolic_links(path)); // wherever the program goes until close
    }

    /// Creates PATH.partial, which must not be there: then no other recorder has it, and it is no link and no pipe.
    void create_partial() const {
        std::error_code ignored;
        if (options_.replace_partial) { std::filesystem::remove(partial_, ignored); }
        errno = 0;
        if (std::FILE* const file = std::fopen(partial_.string().c_str(), "wx")) {
            std::fclose(file);
        } else {
            throw io_error(partial_.string(),
                           errno == EEXIST
                               ? "is there already: the rows of a run that was cut (read_trace with recover, "
                                 "convert_trace --recover), or of a recorder at work; remove it, or set "
                                 "RecorderOptions::replace_partial"
                               : "cannot write: " + std::generic_category().message(errno));
        }
    }

    /// The type in which a binary trace keeps this row; double, that is unrounded, for a text trace.
    template <class T> binary_real real_for(std::int64_t chunk, std::int64_t pos) const {
        constexpr bool wide = std::is_same_v<T, double>;
        if (options_.format == trace_format::text) { return binary_real::float64; }
        if (options_.real != binary_real::automatic) { return options_.real; }
        if (rows_ == 0) { return wide ? binary_real::float64 : binary_real::float32; }
        if (wide && real_ == binary_real::float32) {
            throw std::invalid_argument(detail::RowScorer::place(chunk, pos) +
                                        ": a row of double in a binary trace that began with narrower ones; set "
                                        "RecorderOptions::real");
        }
        return real_;
    }

    void format_row(std::int64_t chunk, std::int64_t pos, std::int64_t target, const RowScore& score,
                    binary_real real) {
        const auto append = [&](double value) {
            if (options_.format == trace_format::text) {
                detail::append_number(line_, value);
            } else {
                line_ += detail::shortest_text(
                    real == binary_real::float32 ? static_cast<double>(static_cast<float>(value)) : value);
            }
        };
        line_.clear();
        for (const std::int64_t number : {chunk, pos, target}) {
            detail::append_number(line_, number);
            line_ += '\t';
        }
        append(score.nll);
        char before = '\t';
        for (const token_id id : score.ids) {
            line_ += std::exchange(before, ',');
            detail::append_number(line_, id);
        }
        before = '\t';
        for (const double logit : score.logits) {
            line_ += std::exchange(before, ',');
            append(logit);
        }
        line_ += '\n';
    }

    /// One write of the whole line, so that a kill leaves at most its beginning.
    void write(std::string_view text, const std::string& what) {
        errno = 0;
        stream_->write(text.data(), static_cast<std::streamsize>(text.size()));
        stream_->flush();
        if (!*stream_) { fail_to_write(what); }
    }

    [[noreturn]] void fail_to_write(const std::string& what) {
        const int number = errno;
        failed_ = true;
        throw io_error(partial_.string(),
                       "cannot write" + what + ": " +
                           (number != 0 ? std::generic_category().message(number) : "the output stream failed"));
    }

    template <class Real> void write_binary() const {
        const WriteOptions write_options{.keep_non_finite = options_.non_finite == non_finite_rows::mark};
        const auto trace = read_text_trace<Real>(partial_, {.keep_non_finite = write_options.keep_non_finite});
        write_binary_trace(target_, trace, trace.source, write_options);
    }

    RecorderOptions options_;
    detail::RowScorer scorer_;
    std::filesystem::path target_, partial_;
    std::unique_ptr<std::ofstream> stream_; ///< of the partial; none when closed or moved from
    std::string line_;                      ///< the row that is being written
    std::size_t rows_ = 0;
    binary_real real_ = binary_real::automatic; ///< decided by the first row
    bool failed_ = false;
};

} // namespace logitstat
