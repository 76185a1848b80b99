#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/trace/metadata.hpp"

namespace test_metadata {

using logitstat::Metadata;

namespace {

Metadata metadata_of(std::vector<Metadata::Line> lines) {
    Metadata metadata;
    for (auto& line : lines) { metadata.add(std::move(line)); }
    return metadata;
}

} // namespace

TEST_CASE("metadata keeps lines in order and ignores empty ones") {
    const auto metadata = metadata_of({{"b", "2"}, {}, {"a", "1"}, {"remark"}, {""}});
    CHECK(metadata.lines() == std::vector<Metadata::Line>{{"b", "2"}, {"a", "1"}, {"remark"}, {""}});
    CHECK(!metadata.empty());
    CHECK(metadata_of({{}}).empty());
    CHECK(metadata == metadata_of({{"b", "2"}, {"a", "1"}, {"remark"}, {""}}));
    CHECK(metadata != metadata_of({{"a", "1"}, {"b", "2"}, {"remark"}, {""}}));
}

TEST_CASE("find gives the value of a key wherever it stands, and takes no value for a key") {
    const auto metadata = metadata_of({{"columns", "chunk", "pos", "device", "x"},
                                       {"lora"},
                                       {"corpus", "tokens", "tokens", "1078"},
                                       {"chunks", "4", "chunk_tokens", "256", "topk"},
                                       {"empty", ""},
                                       {"device", "first"},
                                       {"device", "second"}});
    CHECK(metadata.find("corpus") == "tokens"); // a value that is spelt as a key
    CHECK(metadata.find("tokens") == "1078");
    CHECK(metadata.find("chunks") == "4");
    CHECK(metadata.find("chunk_tokens") == "256");
    CHECK(metadata.find("empty") == "");
    CHECK(metadata.find("device") == "first"); // not the word in the list of columns
    CHECK(metadata.find("columns") == "chunk");
    CHECK(metadata.find("pos") == std::nullopt);
    CHECK(metadata.find("lora") == std::nullopt); // no value
    CHECK(metadata.find("topk") == std::nullopt); // no value
    CHECK(metadata.find("256") == std::nullopt);
    CHECK(metadata.find("absent") == std::nullopt);
    CHECK(metadata.find("") == std::nullopt);
    CHECK(Metadata().find("model") == std::nullopt);
    CHECK(metadata_of({{"lora"}, {"lora", "a.gguf"}}).find("lora") == "a.gguf"); // the first that has a value
}

} // namespace test_metadata
