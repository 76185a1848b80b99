// capture_tiny_lm: scores text with the tiny language model in one of several arithmetics and writes a trace. What a
// capture program of a real model does, at a size that runs in a second.

#include <cstdint>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "../cli.hpp"
#include "arms.hpp"
#include "logitstat/capture.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/output_file.hpp"
#include "logitstat/io/safetensors.hpp"
#include "model.hpp"
#include "weights_file.hpp"

namespace {

using namespace tiny_lm;

constexpr const char* default_text = "examples/tiny_lm/held_out.txt";
constexpr const char* default_weights = "examples/tiny_lm/weights.safetensors";

/// A file of the project, wherever the program runs, unless another one was given.
struct Input {
    std::string name, path;
    Input(const std::string& given, const char* fallback)
        : name(given.empty() ? fallback : given), path(given.empty() ? PROJECT_FOLDER "/" + name : given) {}
};

const Arm& arm_named(const std::string& name) {
    for (const Arm& arm : arms) {
        if (arm.name == name) { return arm; }
    }
    throw std::invalid_argument("ARM: no arm is called " + logitstat::detail::excerpt(name) + " (see --arms)");
}

std::int64_t number_between(const char* option, const std::string& text, std::int64_t lowest, std::int64_t highest) {
    const auto value = cli::number<std::int64_t>(option, text);
    if (value < lowest || value > highest) {
        throw std::invalid_argument(std::string(option) + ": " + text + " is not between " + std::to_string(lowest) +
                                    " and " + std::to_string(highest) + " (see --help)");
    }
    return value;
}

/// Records logits in the type that the arm leaves them in: the rounded values are that type's own.
void record(logitstat::TraceRecorder& trace, logit_type type, std::int64_t chunk, std::int64_t pos, std::uint8_t target,
            std::span<const float> logits) {
    const auto as = [&]<class Type>(Type) {
        const std::vector<Type> stored(logits.begin(), logits.end());
        trace.record(chunk, pos, target, stored);
    };
    switch (type) {
    case logit_type::float32: trace.record(chunk, pos, target, logits); break;
    case logit_type::bfloat16: as(Eigen::bfloat16()); break;
    case logit_type::float16: as(Eigen::half()); break;
    }
}

/// All rows of a run, kept to be written at its end.
struct FullLogits {
    std::vector<float> logits;
    std::vector<std::int32_t> targets;

    void add(std::uint8_t target, std::span<const float> row) {
        logits.insert(logits.end(), row.begin(), row.end());
        targets.push_back(target);
    }
    /// `last` is done when all is written and the file has not yet its name.
    void write(const std::string& path, std::vector<std::uint64_t> shape, const std::function<void()>& last) const {
        using logitstat::tensor_type;
        const logitstat::Tensor tokens{"targets", tensor_type::I32, shape, std::as_bytes(std::span(targets))};
        shape.push_back(logits.size() / targets.size());
        const std::vector<logitstat::Tensor> tensors{
            {"logits", tensor_type::F32, shape, std::as_bytes(std::span(logits))}, tokens};
        logitstat::write_safetensors(path, tensors, {}, last);
    }
};

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Scores text with a tiny language model in one of several arithmetics and writes a trace.",
                 "capture_tiny_lm");
    std::string name, output, chunk_tokens_text = "32", max_chunks_text = "48", top_k_text = "8", prefill_text = "64";
    std::string text_path, weights_path, logits_path;
    app.add_option("ARM", name, "which arithmetic; --arms lists them")->required();
    app.add_option("OUTPUT", output, "the trace")->type_name("FILE")->check(cli::not_empty())->required();
    const auto count = [&](const char* option, std::string& value, const char* help) {
        app.add_option(option, value, help)->type_name("N")->capture_default_str();
    };
    count("CHUNK_TOKENS", chunk_tokens_text,
          "tokens (bytes) that a chunk scores, each from all before it in the chunk; with PREFILL at most 128");
    count("MAX_CHUNKS", max_chunks_text, "chunks, one after the other in the text, unless it ends sooner");
    count("TOPK", top_k_text, "best tokens to record, 2 to 256");
    count("PREFILL", prefill_text, "tokens of context that a chunk reads ahead of them");
    const auto file = [&](const char* option, std::string& value, const char* help) {
        app.add_option(option, value, help)->type_name("FILE")->check(cli::not_empty());
    };
    file("--text", text_path, "text to score (default: the project's held_out.txt)");
    file("--weights", weights_path, "weights, as train_tiny_lm writes them (default: the project's)");
    file("--logits", logits_path,
         "also write all logits and the targets, as safetensors: what compare_logits takes (CHUNK_TOKENS * MAX_CHUNKS "
         "KiB)");
    app.add_flag_callback(
        "--arms",
        [] {
            for (const Arm& arm : arms) {
                std::cout << logitstat::report::pad_right(std::string(arm.name), 19) << arm.description << '\n';
            }
            throw CLI::Success();
        },
        "list the arms and exit");
    app.footer("Example: capture_tiny_lm float32 float32.tsv; capture_tiny_lm bfloat16 bfloat16.tsv\n"
               "         compare_traces float32.tsv bfloat16.tsv");

    return cli::run(app, argc, argv, [&] {
        const Shape shape;
        const Arm& arm = arm_named(name);
        const std::int64_t chunk_tokens = number_between("CHUNK_TOKENS", chunk_tokens_text, 1, shape.context);
        const std::int64_t max_chunks = number_between("MAX_CHUNKS", max_chunks_text, 1, INT32_MAX);
        const std::int64_t top_k = number_between("TOPK", top_k_text, 2, shape.vocabulary);
        const std::int64_t prefill = number_between("PREFILL", prefill_text, 0, shape.context);
        if (chunk_tokens + prefill > shape.context) {
            throw std::invalid_argument("CHUNK_TOKENS and PREFILL: " + std::to_string(chunk_tokens) + " + " +
                                        std::to_string(prefill) + " tokens, the model's context is " +
                                        std::to_string(shape.context));
        }
        for (const std::string& written : {output, logits_path}) {
            if (written == "-") { throw std::invalid_argument("-: cannot write to standard output, name a file"); }
        }
        const Input text_file(text_path, default_text), weights_file(weights_path, default_weights);
        for (const std::string& input : {text_file.path, weights_file.path}) {
            if (cli::same_file(output, input)) {
                throw std::invalid_argument(output + ": the trace would overwrite this input");
            }
            if (!logits_path.empty() && cli::same_file(logits_path, input)) {
                throw std::invalid_argument(logits_path + ": the logits would overwrite this input");
            }
        }
        if (!logits_path.empty() && cli::same_file(logits_path, output)) {
            throw std::invalid_argument(output + ": is to hold the trace and the logits");
        }
        const logitstat::MappedFile file(text_file.path);
        const std::vector<std::uint8_t> text(file.text().begin(), file.text().end());
        const auto tokens = std::ssize(text);
        const std::int64_t chunks = std::min(max_chunks, (tokens - 1 - prefill) / chunk_tokens);
        if (chunks < 1) {
            throw std::invalid_argument(text_file.name + ": " + std::to_string(tokens) +
                                        " bytes of text, a chunk needs " + std::to_string(prefill + chunk_tokens + 1));
        }
        const auto arithmetic = arm.arithmetic();
        Weights<float> weights = read_weights(weights_file.path, shape);
        for (const auto& [tensor, matrix] : weights.all()) { arithmetic->weight(tensor, *matrix); }

        if (!logits_path.empty()) { const logitstat::OutputFile can_be_written(logits_path); } // known before the work

        logitstat::TraceRecorder trace(output, {.top_k = static_cast<std::size_t>(top_k)},
                                       logitstat::RunMetadata{.model = weights_file.name,
                                                              .device = "CPU (" + name + ")",
                                                              .corpus = text_file.name,
                                                              .corpus_tokens = tokens,
                                                              .chunks = chunks,
                                                              .chunk_tokens = chunk_tokens,
                                                              .prefill = prefill,
                                                              .start_token = prefill,
                                                              .contiguous = true});
        cli::Progress progress("chunks");
        Activations<float> activations;
        FullLogits full;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
            const std::int64_t start = chunk * chunk_tokens, size = prefill + chunk_tokens;
            const std::span read(&text[static_cast<std::size_t>(start)], static_cast<std::size_t>(size));
            const Matrix<float> logits = forward(shape, weights, *arithmetic, read, activations);
            for (std::int64_t pos = 0; pos < chunk_tokens; ++pos) {
                const std::int64_t row = prefill + pos;
                const std::uint8_t target = text[static_cast<std::size_t>(start + row + 1)];
                const auto scores = row_span(logits, row, logits.cols());
                record(trace, arm.logits, chunk, pos, target, scores);
                if (!logits_path.empty()) { full.add(target, scores); }
            }
            progress(static_cast<std::size_t>(chunk + 1), static_cast<std::size_t>(chunks));
        }
        if (logits_path.empty()) {
            trace.close();
        } else { // both files or none
            full.write(logits_path, {static_cast<std::uint64_t>(chunks), static_cast<std::uint64_t>(chunk_tokens)},
                       [&] { trace.close(); });
        }
        return 0;
    });
}
