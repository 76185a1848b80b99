#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <Eigen/Core>
#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/capture.hpp"
#include "logitstat/io/read_trace.hpp"
#include "simd/rows.hpp"

using logitstat::concatenate;
using logitstat::Metadata;
using logitstat::read_trace;
using logitstat::RunMetadata;
using logitstat::score_row;
using logitstat::TraceBuilder;
using logitstat::TraceRecorder;
using testing::contains;
using testing::content;
using testing::message_of;
using testing::TemporaryFolder;

namespace {

constexpr std::size_t vocabulary = 100;

/// What a harness would hand over at the i-th position.
std::vector<float> row_of(std::size_t i) { return rows::like_a_model<float>(vocabulary, i + 1); }
std::int64_t chunk_of(std::size_t i) { return static_cast<std::int64_t>(i / 7); }
std::int64_t pos_of(std::size_t i) { return static_cast<std::int64_t>(i % 7); }
std::int64_t target_of(std::size_t i) { return static_cast<std::int64_t>(i * 31 % vocabulary); }

void record(TraceRecorder& trace, std::size_t i) { trace.record(chunk_of(i), pos_of(i), target_of(i), row_of(i)); }

/// Compares position i of a trace with the oracle; `rounding` is what the format may add.
template <class Trace> bool is_expected(const Trace& trace, std::size_t i, double rounding) {
    const auto row = row_of(i);
    const auto view = trace.view();
    const auto ranking = rows::ranking(std::span<const float>(row));
    const auto nll =
        static_cast<double>(rows::nll(std::span<const float>(row), static_cast<std::size_t>(target_of(i))));
    bool good = view.chunk[i] == chunk_of(i) && view.pos[i] == pos_of(i) && view.target[i] == target_of(i) &&
                std::abs(static_cast<double>(view.nll[i]) - nll) <= 2e-6 + rounding;
    for (std::size_t j = 0; j < view.k; ++j) {
        const auto logit = static_cast<double>(row[static_cast<std::size_t>(ranking[j])]);
        good = good && view.ids(j)[i] == ranking[j] &&
               std::abs(static_cast<double>(view.logits(j)[i]) - logit) <= rounding;
    }
    return good;
}

const RunMetadata granite{.model = "models/mlx/granite-4.0-h-tiny-4bit",
                          .device = "Apple GPU (Metal)",
                          .corpus = "tests/fixtures/wikitext2_excerpt.txt",
                          .corpus_tokens = 289403,
                          .chunks = 128,
                          .chunk_tokens = 1,
                          .prefill = 512,
                          .start_token = 512,
                          .contiguous = false};

/// The first lines of a published trace (metal_m5_3c9edea0_granite-4.0-h-tiny_default_w1ctx512.tsv).
const std::string granite_lines = "# model\tmodels/mlx/granite-4.0-h-tiny-4bit\n"
                                  "# device\tApple GPU (Metal)\n"
                                  "# corpus\ttests/fixtures/wikitext2_excerpt.txt\ttokens\t289403\n"
                                  "# chunks\t128\tchunk_tokens\t1\ttopk\t8\tprefill\t512\n"
                                  "# columns\tchunk\tpos\ttarget\tnll\ttop_ids\ttop_logits\n"
                                  "# start_token\t512\n"
                                  "# contiguous\tfalse\n";

struct Format {
    const char* name;
    double rounding; ///< of what is read back, beside the NLL's rounding to float
};
const Format text{"trace.tsv", 0.5000001e-6}, binary{"trace.safetensors", 0};

} // namespace

TEST_CASE("both formats: what was recorded is read back") {
    for (const Format& format : {text, binary}) {
        const TemporaryFolder folder;
        TraceRecorder trace(folder / format.name, {.top_k = 8}, granite);
        CHECK(folder.names() == std::set<std::string>{std::string(format.name) + ".partial"});
        for (std::size_t i = 0; i < 128; ++i) { record(trace, i); }
        CHECK(trace.rows() == 128);
        const auto partial = read_trace(trace.partial_path());
        trace.close();
        trace.close(); // again: nothing
        CHECK(folder.names() == std::set<std::string>{format.name});
        const auto read = read_trace(folder / format.name);
        REQUIRE(read.size() == 128);
        CHECK(read.k == 8);
        CHECK(testing::same_data(read, partial)); // a killed run loses no bit of its rows either
        CHECK(logitstat::looks_like_safetensors(content(folder / format.name)) == (format.rounding == 0));
        CHECK(read.source.warnings.empty());
        CHECK(read.source.metadata == granite.metadata(8));
        for (std::size_t i = 0; i < 128; ++i) {
            CAPTURE(i);
            CHECK(is_expected(read, i, format.rounding + (format.rounding == 0 ? 1e-6 * 0.5 : 0)));
        }
        CHECK_THROWS_AS(record(trace, 200), std::invalid_argument); // it is closed
    }
}

TEST_CASE("a text trace is byte for byte what write_text_trace writes of the same rows") {
    const TemporaryFolder folder;
    TraceRecorder trace(folder / "a.tsv", {.top_k = 5}, granite);
    TraceBuilder<double> builder(5);
    for (std::size_t i = 0; i < 50; ++i) {
        record(trace, i);
        builder.record(chunk_of(i), pos_of(i), target_of(i), row_of(i));
    }
    trace.close();
    CHECK(builder.size() == 50);
    write_text_trace(folder / "b.tsv", builder.trace(granite.metadata(5)));
    CHECK(content(folder / "a.tsv") == content(folder / "b.tsv"));
}

TEST_CASE("metadata are the lines of a real trace; what is not known is left out") {
    const TemporaryFolder folder;
    {
        TraceRecorder trace(folder / "a.tsv", {.top_k = 8}, granite);
        record(trace, 0);
        trace.close();
    }
    CHECK(content(folder / "a.tsv").starts_with(granite_lines + "0\t0\t0\t"));

    const auto lines = [](const RunMetadata& run) { return logitstat::detail::metadata_text(run.metadata(4)); };
    const std::string columns = "# columns\tchunk\tpos\ttarget\tnll\ttop_ids\ttop_logits\n";
    CHECK(lines({}) == "# topk\t4\n" + columns);
    CHECK(lines({.corpus = "c.txt", .contiguous = true, .extra = {{"lora", "a"}, {"seed", "1", "mode", "x"}}}) ==
          "# corpus\tc.txt\n# topk\t4\n" + columns + "# contiguous\ttrue\n# lora\ta\n# seed\t1\tmode\tx\n");
    CHECK(lines({.chunks = 0, .prefill = 0}) == "# chunks\t0\ttopk\t4\tprefill\t0\n" + columns);

    const auto refused = message_of<std::invalid_argument>(
        [&] { TraceRecorder(folder / "b.tsv", {}, RunMetadata{.model = "two\nlines"}); });
    CHECK(contains(refused, "control byte"));
    CHECK(folder.names() == std::set<std::string>{"a.tsv"});
}

TEST_CASE("metadata given as they are") {
    const TemporaryFolder folder;
    Metadata metadata;
    metadata.add({"note", "of its own"});
    TraceRecorder trace(folder / "a.tsv", {.top_k = 2}, metadata);
    record(trace, 0);
    trace.close();
    CHECK(read_trace(folder / "a.tsv").source.metadata == metadata);
}

TEST_CASE("rows of every kind: spans, vectors, arrays, Eigen rows with and without a stride, half and bfloat16") {
    const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> by_row =
        Eigen::MatrixXf::Random(4, vocabulary);
    const Eigen::MatrixXf by_column = by_row;
    const std::vector<float> row(by_row.data() + vocabulary, by_row.data() + 2 * vocabulary);
    const auto expected = score_row(row, 3, 4);
    const auto same = [&](const auto& logits) {
        const auto score = score_row(logits, 3, 4);
        return score.nll == expected.nll && score.ids == expected.ids && score.logits == expected.logits;
    };
    std::array<float, vocabulary> array;
    std::copy(row.begin(), row.end(), array.begin());
    std::vector<float> mutable_row = row;
    CHECK(same(std::span<const float>(row)));
    CHECK(same(std::span<float>(mutable_row)));
    CHECK(same(array));
    CHECK(same(by_row.row(1)));
    CHECK(same(by_column.row(1))); // strided: copied
    CHECK(same(by_row.row(1).transpose()));
    CHECK(same(Eigen::VectorXf(by_column.row(1))));
    CHECK(same(Eigen::Map<const Eigen::RowVectorXf>(row.data(), vocabulary)));
    CHECK(same(by_row.row(1) + Eigen::RowVectorXf::Zero(vocabulary)));
    CHECK(same(by_row.row(1).array()));
    CHECK(same(by_row.middleRows(1, 2).row(0)));
    CHECK(same(std::vector<double>(row.begin(), row.end())) == false); // double sums differ in their last bits
    CHECK(score_row(std::vector<double>(row.begin(), row.end()), 3, 4).nll ==
          doctest::Approx(expected.nll).epsilon(1e-6));

    const auto halves = rows::like_a_model<rows::half>(vocabulary, 1);
    const auto brains = rows::like_a_model<rows::bfloat16>(vocabulary, 1);
    const Eigen::Map<const Eigen::Matrix<rows::half, 1, Eigen::Dynamic>> map(halves.data(), vocabulary);
    CHECK(score_row(map, 3, 4).nll == score_row(halves, 3, 4).nll);
    CHECK(score_row(brains, 3, 4).logits[0] ==
          static_cast<double>(rows::value(brains[static_cast<std::size_t>(score_row(brains, 3, 4).ids[0])])));
}

TEST_CASE("binary traces keep what the harness had: floats as F32, doubles as F64, and no bit is lost") {
    const TemporaryFolder folder;
    const auto type_of = [&](const char* name) {
        return std::string(to_string(logitstat::SafetensorsFile(folder / name).find("top_logits")->type));
    };
    const auto doubles = rows::like_a_model<double>(vocabulary, 3);
    const auto record_one = [&](const char* name, logitstat::RecorderOptions options, const auto& row) {
        TraceRecorder trace(folder / name, options);
        trace.record(0, 0, 1, row);
        trace.close();
        const auto read = read_trace(folder / name);
        const auto truth = score_row(row, 1, options.top_k);
        const bool narrow = type_of(name) == "F32";
        const auto kept = [&](double x) { return narrow ? static_cast<double>(static_cast<float>(x)) : x; };
        CHECK(read.nll[0] == kept(truth.nll));
        for (std::size_t j = 0; j < options.top_k; ++j) { CHECK(read.logits(j)[0] == kept(truth.logits[j])); }
    };
    record_one("float.safetensors", {}, row_of(1));
    record_one("half.safetensors", {}, rows::like_a_model<rows::half>(vocabulary, 1));
    record_one("bfloat16.safetensors", {}, rows::like_a_model<rows::bfloat16>(vocabulary, 1));
    record_one("double.safetensors", {}, doubles);
    record_one("asked32.safetensors", {.real = logitstat::binary_real::float32}, doubles);
    record_one("asked64.safetensors", {.real = logitstat::binary_real::float64}, row_of(1));
    record_one("named.bin", {.format = logitstat::trace_format::binary}, row_of(1));
    CHECK(type_of("float.safetensors") == "F32");
    CHECK(type_of("half.safetensors") == "F32");
    CHECK(type_of("bfloat16.safetensors") == "F32");
    CHECK(type_of("double.safetensors") == "F64");
    CHECK(type_of("asked32.safetensors") == "F32");
    CHECK(type_of("asked64.safetensors") == "F64");
    CHECK(type_of("named.bin") == "F32");
    CHECK(read_trace(folder / "asked64.safetensors").nll[0] == score_row(row_of(1), 1, 8).nll); // unrounded

    TraceRecorder mixed(folder / "mixed.safetensors", {});
    mixed.record(0, 0, 1, row_of(1));
    const auto message = message_of<std::invalid_argument>([&] { mixed.record(0, 1, 1, doubles); });
    CHECK(contains(message, "chunk 0, pos 1: a row of double"));
    mixed.record(0, 1, 1, row_of(2)); // as before
    TraceRecorder wide(folder / "wide.safetensors", {});
    wide.record(0, 0, 1, doubles);
    wide.record(0, 1, 1, row_of(2)); // nothing is lost
    TraceRecorder as_text(folder / "mixed.tsv", {});
    as_text.record(0, 0, 1, row_of(1));
    as_text.record(0, 1, 1, doubles);
}

TEST_CASE("a caller's mistakes name chunk and pos, and the recorder is as before") {
    const TemporaryFolder folder;
    CHECK(contains(message_of<std::invalid_argument>([&] { TraceRecorder(folder / "a.tsv", {.top_k = 1}); }), "top_k"));
    CHECK(folder.names().empty());
    TraceRecorder trace(folder / "a.tsv", {.top_k = 3});
    trace.record(4, 2, 0, row_of(0));
    const auto refused = [&](std::int64_t chunk, std::int64_t pos, std::int64_t target, std::vector<float> row) {
        return message_of<std::invalid_argument>([&] { trace.record(chunk, pos, target, row); });
    };
    CHECK(refused(4, 2, 0, row_of(1)) ==
          "chunk 4, pos 2: chunk and pos do not increase, the row before is chunk 4, pos 2");
    CHECK(contains(refused(4, 1, 0, row_of(1)), "do not increase"));
    CHECK(contains(refused(3, 9, 0, row_of(1)), "do not increase"));
    CHECK(contains(refused(-1, 0, 0, row_of(1)), "must lie in"));
    CHECK(contains(refused(5, std::int64_t{1} << 31, 0, row_of(1)), "must lie in"));
    CHECK(refused(5, 0, vocabulary, row_of(1)) == "chunk 5, pos 0: target 100 is no token of a vocabulary of 100");
    CHECK(contains(refused(5, 0, -1, row_of(1)), "target -1"));
    CHECK(refused(5, 0, 0, std::vector<float>(99)) == "chunk 5, pos 0: 99 logits, the rows before have 100");
    auto bad = row_of(1);
    bad[17] = rows::forbidden<float>()[1];
    CHECK(refused(5, 0, 0, bad) == "chunk 5, pos 0: the logit of token 17 is NaN");
    trace.record(5, 0, 0, row_of(1));
    trace.close();
    CHECK(read_trace(folder / "a.tsv").size() == 2);

    TraceRecorder small(folder / "b.tsv", {.top_k = 101});
    CHECK(contains(message_of<std::invalid_argument>([&] { small.record(0, 0, 0, row_of(0)); }),
                   "chunk 0, pos 0: the best 101 of 100 logits"));
    TraceBuilder<float> builder(3);
    builder.record(1, 1, 1, row_of(0));
    CHECK(contains(message_of<std::invalid_argument>([&] { builder.record(1, 1, 1, row_of(0)); }), "do not increase"));
    CHECK(builder.size() == 1);
}

TEST_CASE("no rows: an error, and nothing stays") {
    for (const Format& format : {text, binary}) {
        const TemporaryFolder folder;
        TraceRecorder trace(folder / format.name, {});
        CHECK(contains(message_of<std::invalid_argument>([&] { trace.close(); }), "no row"));
        CHECK(folder.names().empty());
    }
}

TEST_CASE("marked rows: told apart in the file, refused by readers that do not ask for them") {
    for (const Format& format : {text, binary}) {
        const TemporaryFolder folder;
        TraceRecorder trace(folder / format.name, {.top_k = 2, .non_finite = logitstat::non_finite_rows::mark});
        record(trace, 0);
        auto bad = row_of(1);
        for (const float x : rows::forbidden<float>()) { // one after the other, in one row
            bad[3] = x;
            const auto i = static_cast<std::size_t>(trace.rows());
            trace.record(chunk_of(i), pos_of(i), 5, bad);
        }
        std::vector<float> masked(vocabulary, rows::minus_infinity<float>());
        trace.record(9, 0, 5, masked);
        masked[5] = 1; // one finite logit, where two are asked for
        trace.record(9, 1, 5, masked);
        masked[6] = 1;
        trace.record(9, 2, 5, masked); // fine
        trace.record(9, 3, 7, masked); // its target is masked
        trace.close();
        CHECK_THROWS_AS(read_trace(folder / format.name), logitstat::parse_error);
        const auto read = read_trace(folder / format.name, {.keep_non_finite = true});
        REQUIRE(read.size() == 11);
        for (std::size_t i = 0; i < read.size(); ++i) {
            const bool fine = i == 0 || i == 9;
            CHECK(std::isnan(read.nll[i]) == !fine);
            CHECK(std::isnan(read.logits(0)[i]) == !fine);
            CHECK(std::isnan(read.logits(1)[i]) == !fine);
            if (!fine) { CHECK((read.ids(0)[i] == 0 && read.ids(1)[i] == 1)); }
        }
        CHECK(is_expected(read, 0, format.rounding + 0.5e-6));
        CHECK(logitstat::finite_positions(read, read) == std::vector<std::size_t>{0, 9});
    }
}

TEST_CASE("an exception or a return without close leaves the partial; the file before keeps its content") {
    const TemporaryFolder folder;
    folder.write("a.tsv", "old");
    { // a run that ends early
        TraceRecorder trace(folder / "a.tsv", {.top_k = 2});
        for (std::size_t i = 0; i < 10; ++i) { record(trace, i); }
        CHECK(trace.partial_path() == folder / "a.tsv.partial");
    }
    CHECK(content(folder / "a.tsv") == "old");
    CHECK(folder.names() == std::set<std::string>{"a.tsv", "a.tsv.partial"});
    CHECK(read_trace(folder / "a.tsv.partial", {.recover = true}).size() == 10);

    // What was left is not lost to the next run unless that is asked for.
    CHECK(contains(message_of<logitstat::io_error>([&] { TraceRecorder(folder / "a.tsv", {.top_k = 2}); }),
                   "a.tsv.partial: is there already"));
    CHECK(read_trace(folder / "a.tsv.partial", {.recover = true}).size() == 10);
    TraceRecorder trace(folder / "a.tsv", {.top_k = 2, .replace_partial = true});
    record(trace, 0);
    trace.close();
    CHECK(read_trace(folder / "a.tsv").size() == 1);
    CHECK(folder.names() == std::set<std::string>{"a.tsv"});
}

TEST_CASE("each row is in the file, whole, when record returns") {
    for (const Format& format : {text, binary}) {
        const TemporaryFolder folder;
        TraceRecorder trace(folder / format.name, {.top_k = 2}, granite);
        CHECK(content(trace.partial_path()) == logitstat::detail::metadata_text(granite.metadata(2)));
        for (std::size_t i = 0; i < 20; ++i) {
            record(trace, i);
            const auto read = read_trace(trace.partial_path());
            CHECK(read.size() == i + 1);
            CHECK(is_expected(read, i, format.rounding + (format.rounding == 0 ? 0.5e-6 : 0)));
        }
    }
}

TEST_CASE("moving: one of the two records") {
    const TemporaryFolder folder;
    TraceRecorder first(folder / "a.tsv", {.top_k = 2});
    record(first, 0);
    TraceRecorder second = std::move(first);
    CHECK_THROWS_AS(record(first, 1), std::invalid_argument);
    first.close(); // not its file any more
    CHECK(folder.names() == std::set<std::string>{"a.tsv.partial"});
    record(second, 1);
    second.close();
    CHECK(read_trace(folder / "a.tsv").size() == 2);
    static_assert(!std::is_copy_constructible_v<TraceRecorder> && std::is_nothrow_move_constructible_v<TraceRecorder>);
}

TEST_CASE("two recorders never share a file") {
    const TemporaryFolder folder;
    TraceRecorder first(folder / "a.tsv", {.top_k = 2});
    record(first, 0);
    CHECK_THROWS_AS(TraceRecorder(folder / "a.tsv", {.top_k = 2}), logitstat::io_error);
    record(first, 1);
    first.close();
    CHECK(read_trace(folder / "a.tsv").size() == 2);

    folder.write("victim", "precious"); // nor is a link at the partial's name followed
    std::filesystem::create_symlink("victim", folder / "b.tsv.partial");
    CHECK_THROWS_AS(TraceRecorder(folder / "b.tsv", {.top_k = 2}), logitstat::io_error);
    TraceRecorder second(folder / "b.tsv", {.top_k = 2, .replace_partial = true});
    record(second, 0);
    second.close();
    CHECK(content(folder / "victim") == "precious");
    CHECK(!std::filesystem::is_symlink(folder / "b.tsv"));
}

TEST_CASE("the file is where it was meant to be, wherever the program goes") {
    const TemporaryFolder folder;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    TraceRecorder trace("a.tsv", {.top_k = 2});
    std::filesystem::current_path(before);
    record(trace, 0);
    trace.close();
    CHECK(folder.names() == std::set<std::string>{"a.tsv"});
}

TEST_CASE("values beyond the type in which they are kept are refused, or marked") {
    const TemporaryFolder folder;
    constexpr double most = std::numeric_limits<double>::max();
    constexpr float most_float = std::numeric_limits<float>::max();
    const std::vector<double> wide{most, 1, -most, 2}, large{1e300, 1e299, 3, 4};
    const std::vector<float> narrow{most_float, 1, -most_float, 2};
    const auto refused = [](auto& recorder, const auto& row, std::int64_t target) {
        return contains(message_of<std::invalid_argument>([&] { recorder.record(0, 0, target, row); }),
                        "chunk 0, pos 0: its NLL or a logit is beyond the range of");
    };
    TraceRecorder doubles(folder / "a.tsv", {.top_k = 2});
    CHECK(refused(doubles, wide, 2)); // the NLL overflows
    TraceRecorder floats(folder / "a.safetensors", {.top_k = 2});
    CHECK(refused(floats, narrow, 2)); // the NLL is no float
    TraceRecorder narrowing(folder / "b.safetensors", {.top_k = 2, .real = logitstat::binary_real::float32});
    CHECK(refused(narrowing, large, 0)); // the logits are none
    TraceBuilder<float> builder(2);
    CHECK(refused(builder, narrow, 2));
    CHECK(refused(builder, large, 0));
    CHECK(builder.size() == 0);
    doubles.record(0, 0, 0, narrow); // a double holds it
    TraceBuilder<float> marking(2, logitstat::non_finite_rows::mark);
    marking.record(0, 0, 2, narrow);
    CHECK(std::isnan(marking.trace().nll[0]));
    CHECK(marking.trace().top_ids[0] == 0);
}

TEST_CASE("where no file can be: an error at once, nothing replaced") {
    const TemporaryFolder folder;
    CHECK_THROWS_AS(TraceRecorder("", {}), std::invalid_argument);
    CHECK_THROWS_AS(TraceRecorder(folder / "no/such/folder.tsv", {}), logitstat::io_error);
    CHECK_THROWS_AS(TraceRecorder(folder.path(), {}), logitstat::io_error);
    CHECK_THROWS_AS(TraceRecorder("/dev/full", {}), logitstat::io_error);
    CHECK(folder.names().empty());

    std::filesystem::create_directory(folder / "real"); // a link stays one, and what it names is written
    std::filesystem::create_symlink("real/a.tsv", folder / "link.tsv");
    TraceRecorder trace(folder / "link.tsv", {.top_k = 2});
    record(trace, 0);
    trace.close();
    CHECK(std::filesystem::is_symlink(folder / "link.tsv"));
    CHECK(read_trace(folder / "real/a.tsv").size() == 1);
}

namespace {
/// Lets no file of this process grow beyond `bytes` as long as it lives: a full disk.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    ~FileSizeLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

  private:
    void (*handler_)(int);
    rlimit before_{};
};
} // namespace

TEST_CASE("a full disk: an error that says where, and the rows before it can be had") {
    for (const Format& format : {text, binary}) {
        const TemporaryFolder folder;
        TraceRecorder trace(folder / format.name, {.top_k = 2});
        std::string message;
        {
            const FileSizeLimit limit(1000);
            message = message_of<logitstat::io_error>([&] {
                for (std::size_t i = 0; i < 1000; ++i) { record(trace, i); }
            });
        }
        const std::size_t kept = trace.rows();
        CHECK(kept > 5);
        CHECK(contains(message, std::string(format.name) + ".partial: cannot write the row of chunk " +
                                    std::to_string(chunk_of(kept)) + ", pos " + std::to_string(pos_of(kept)) + ": "));
        CHECK(contains(message, "File too large"));
        // There is room again, but the row that was cut would spoil those behind it.
        CHECK_THROWS_AS(record(trace, kept), logitstat::io_error);
        CHECK_THROWS_AS(trace.close(), logitstat::io_error);
        CHECK(folder.names() == std::set<std::string>{std::string(format.name) + ".partial"});
        const auto read = read_trace(trace.partial_path(), {.recover = true});
        CHECK(read.size() == kept);
    }
}

TEST_CASE("a full disk at close: the partial stays, and close can be called again") {
    const TemporaryFolder folder;
    TraceRecorder trace(folder / "a.safetensors", {.top_k = 2});
    for (std::size_t i = 0; i < 100; ++i) { record(trace, i); }
    {
        const FileSizeLimit limit(1000);
        CHECK_THROWS_AS(trace.close(), logitstat::io_error);
    }
    CHECK(folder.names() == std::set<std::string>{"a.safetensors.partial"});
    trace.close();
    CHECK(folder.names() == std::set<std::string>{"a.safetensors"});
    CHECK(read_trace(folder / "a.safetensors").size() == 100);
}

TEST_CASE("killed at any time: a prefix of the rows is there, and each is right") {
    std::mt19937_64 random(1);
    for (const Format& format : {text, binary}) {
        std::size_t most = 0, without_rows = 0, torn = 0;
        for (int run = 0; run < 60; ++run) {
            const TemporaryFolder folder;
            std::array<int, 2> first_row; // every other run is killed some time after it, however slow the machine
            REQUIRE(pipe(first_row.data()) == 0);
            const pid_t child = fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                TraceRecorder trace(folder / format.name, {.top_k = 8}, granite);
                for (std::size_t i = 0;; ++i) {
                    record(trace, i);
                    if (i == 0 && write(first_row[1], "1", 1) != 1) { _exit(1); }
                }
            }
            close(first_row[1]);
            char byte = 0;
            if (run % 2 == 0) { REQUIRE(read(first_row[0], &byte, 1) == 1); }
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
            REQUIRE(kill(child, SIGKILL) == 0);
            int status = 0;
            REQUIRE(waitpid(child, &status, 0) == child);
            REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)); // and did not end by itself
            close(first_row[0]);
            const auto partial = folder / (std::string(format.name) + ".partial");
            const std::string bytes = std::filesystem::exists(partial) ? content(partial) : "";
            if (bytes.size() <= granite_lines.size()) {
                ++without_rows;
                continue;
            }
            torn += !bytes.ends_with('\n');
            const auto whole = static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
            const std::size_t recorded = whole - 7; // lines of metadata
            if (recorded == 0) { continue; }
            const auto read = read_trace(partial, {.recover = true});
            REQUIRE(read.size() == recorded);
            CHECK(read.source.metadata == granite.metadata(8));
            CHECK(testing::broken_invariant(read) == "");
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < read.size(); ++i) {
                wrong += !is_expected(read, i, format.rounding + (format.rounding == 0 ? 0.5e-6 : 0));
            }
            CHECK(wrong == 0);
            most = std::max(most, read.size());
        }
        CHECK(most > 0);
        CHECK(without_rows < 60);
        MESSAGE(std::string(format.name) << ": up to " << most << " rows, " << without_rows << " runs without, " << torn
                                         << " torn");
    }
}

TEST_CASE("threads record apart, concatenate joins") {
    const TemporaryFolder folder;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            TraceRecorder trace(folder / ("part" + std::to_string(t) + (t == 1 ? ".safetensors" : ".tsv")),
                                {.top_k = 4}, granite);
            for (std::size_t i = 7 * t * 2; i < 7 * (t + 1) * 2; ++i) { record(trace, i); }
            trace.close();
        });
    }
    for (std::thread& thread : threads) { thread.join(); }
    std::vector<logitstat::LoadedTrace> parts;
    for (const char* name : {"part0.tsv", "part1.safetensors", "part2.tsv"}) {
        parts.push_back(read_trace(folder / name));
    }
    const auto whole = concatenate(parts);
    REQUIRE(whole.size() == 42);
    CHECK(whole.k == 4);
    CHECK(whole.source.metadata == granite.metadata(4));
    CHECK(testing::broken_invariant(whole) == "");
    for (std::size_t i = 0; i < 42; ++i) { CHECK(is_expected(whole, i, text.rounding + 0.5e-6)); }
    CHECK(testing::same_data(concatenate(std::span(parts).first(1)), parts[0]));

    std::swap(parts[1], parts[2]);
    CHECK(message_of<std::invalid_argument>([&] { concatenate(parts); }) ==
          "part 2 begins at chunk 2, pos 0, the part before ends at chunk 5, pos 6");
    CHECK_THROWS_AS(concatenate(std::span(parts).first(0)), std::invalid_argument);
}

TEST_CASE("concatenate refuses what is not of one run") {
    const auto part = [](std::size_t first, std::size_t k, const RunMetadata& run) {
        TraceBuilder<float> builder(k);
        for (std::size_t i = first; i < first + 3; ++i) {
            builder.record(chunk_of(i), pos_of(i), target_of(i), row_of(i));
        }
        return builder.trace(run.metadata(k));
    };
    const auto join = [](auto a, auto b) { return concatenate(std::vector{std::move(a), std::move(b)}); };
    CHECK(join(part(0, 2, granite), part(3, 2, granite)).size() == 6);
    CHECK(contains(message_of<std::invalid_argument>([&] { join(part(0, 2, granite), part(3, 3, granite)); }),
                   "part 1 has k = 3"));
    CHECK_THROWS_AS(join(part(0, 2, granite), part(2, 2, granite)), std::invalid_argument); // the last row again
    RunMetadata other = granite;
    other.prefill = 0;
    CHECK(contains(message_of<logitstat::not_comparable>([&] { join(part(0, 2, granite), part(3, 2, other)); }),
                   "prefill"));
    other = granite;
    other.device = "GPU";
    CHECK(contains(message_of<logitstat::not_comparable>([&] { join(part(0, 2, granite), part(3, 2, other)); }),
                   "another device"));
    auto broken = part(0, 2, granite);
    broken.nll.pop_back();
    CHECK_THROWS_AS(join(broken, part(3, 2, granite)), std::invalid_argument);
    RunMetadata six = granite; // announces as many positions as the whole has, so no part is suspected to be cut
    six.chunks = 6;
    six.chunk_tokens = 1;
    auto first = part(0, 2, six), rest = part(3, 2, six);
    for (auto* each : {&first, &rest}) {
        each->source.warnings = logitstat::content_warnings(*each, each->source.metadata, "");
        REQUIRE(each->source.warnings.size() == 1);
    }
    first.source.warnings.push_back("something else");
    CHECK(join(first, rest).source.warnings == std::vector<std::string>{"something else"});
    CHECK(join(first, part(4, 2, six)).source.warnings == std::vector<std::string>{"something else"});
    six.chunks = 7;
    CHECK(
        contains(join(part(0, 2, six), part(3, 2, six)).source.warnings.at(0), "the joined trace: holds 6 positions"));
    const auto view = part(0, 2, granite), next = part(3, 2, granite);
    const std::vector views{view.view(), next.view()}; // without a source: nothing to hold against each other
    CHECK(concatenate(views).size() == 6);
}
