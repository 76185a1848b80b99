#pragma once

// What the programs that read full logits share: files in shards, targets, chunks.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli.hpp"
#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/logits_positions.hpp"
#include "logitstat/io/targets.hpp"

namespace cli {

/// One arm: a file, or several whose rows follow each other.
class LogitsInput {
  public:
    /// `argument` is the name of the positional argument, `option` what the names of its options begin with.
    LogitsInput(CLI::App& app, const char* argument, const std::string& option, const std::string& help) {
        paths_.resize(1);
        app.add_option(argument, paths_.front(), help + ": .npy, safetensors, or llama.cpp's .kld")
            ->type_name("FILE")
            ->required()
            ->check(not_empty());
        app.add_option(option + "shard", shards_, "a further file whose rows follow; may be given again")
            ->type_name("FILE")
            ->allow_extra_args(false)
            ->check(not_empty());
        app.add_option(option + "tensor", tensor_, "of safetensors files: the tensor that holds the logits")
            ->type_name("NAME");
    }
    std::vector<std::string> paths() const {
        std::vector<std::string> all = paths_;
        all.insert(all.end(), shards_.begin(), shards_.end());
        return all;
    }
    logitstat::LogitsFile open() const {
        const auto all = paths();
        const std::vector<std::filesystem::path> files(all.begin(), all.end());
        return logitstat::read_logits(std::span(files), {.tensor = tensor_});
    }

  private:
    std::vector<std::string> paths_, shards_;
    std::string tensor_;
};

/// Where the rows stand and what they predict.
class PositionFlags {
  public:
    explicit PositionFlags(CLI::App& app) {
        app.add_option("--targets", targets_,
                       "the tokens that the rows predict: integers in .npy or safetensors, a trace (which also says "
                       "chunks and positions) or .kld; default: those of the logits files")
            ->type_name("FILE")
            ->check(not_empty());
        app.add_option("--targets-tensor", tensor_, "of a safetensors file of targets: the tensor")->type_name("NAME");
        app.add_option("--chunk-rows", chunk_rows_,
                       "rows of each chunk of text, for standard errors by chunk; default: what the files say (.kld, a "
                       "trace, the n of [batch, n, V]), else one chunk")
            ->type_name("N")
            ->check(not_empty());
    }
    std::vector<std::string> paths() const {
        return targets_.empty() ? std::vector<std::string>{} : std::vector<std::string>{targets_};
    }
    logitstat::LogitsPositions read(std::span<const logitstat::LogitsFile* const> files) const {
        if (!tensor_.empty() && targets_.empty()) {
            throw std::invalid_argument("--targets-tensor goes with --targets (see --help)");
        }
        std::optional<logitstat::NamedPositions> given;
        if (!targets_.empty()) { given = {logitstat::read_positions(targets_, tensor_), targets_}; }
        std::optional<std::size_t> rows;
        if (!chunk_rows_.empty()) {
            rows = number<std::size_t>("--chunk-rows", chunk_rows_);
            if (*rows == 0) { throw std::invalid_argument("--chunk-rows: a chunk of 0 rows"); }
        }
        return logitstat::joint_positions(given, files, rows);
    }

  private:
    std::string targets_, tensor_, chunk_rows_;
};

} // namespace cli
