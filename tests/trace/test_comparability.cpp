#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/trace/comparability.hpp"

namespace test_comparability {

using logitstat::like_for_like_differences;
using logitstat::Metadata;
using logitstat::not_comparable;
using logitstat::Trace;

namespace {

/// n positions in chunks of 10; the figures do not matter here.
template <class Real = double> Trace<Real> trace_of(std::size_t n, std::size_t k = 2) {
    auto trace = Trace<Real>::with_shape(n, k);
    for (std::size_t i = 0; i < n; ++i) {
        trace.chunk[i] = static_cast<std::int32_t>(i / 10);
        trace.pos[i] = static_cast<std::int32_t>(i % 10);
        trace.target[i] = static_cast<std::int32_t>(1000 + i);
    }
    return trace;
}

/// The message of the refusal, "" when the traces are comparable.
template <class R, class C> std::string refusal(const R& reference, const C& candidate) {
    try {
        logitstat::require_comparable(reference, candidate);
    } catch (const not_comparable& e) { return e.what(); }
    return "";
}

Metadata metadata_of(std::vector<Metadata::Line> lines) {
    Metadata metadata;
    for (auto& line : lines) { metadata.add(std::move(line)); }
    return metadata;
}

} // namespace

TEST_CASE("comparable traces may differ in values, k, type and metadata") {
    auto candidate = trace_of<float>(37, 5);
    candidate.nll.assign(37, 2.5f);
    candidate.top_ids.assign(5 * 37, 9);
    candidate.source.metadata.add({"tokens", "1"});
    CHECK(refusal(trace_of(37), candidate) == "");
    CHECK(refusal(trace_of(37).view(), candidate.view()) == "");
    CHECK(refusal(trace_of(0), trace_of(0)) == "");
}

TEST_CASE("the first difference is named, in each column and at each place") {
    // Lengths and places around the widths of registers, whose remainders are compared one by one.
    for (const std::size_t n : std::initializer_list<std::size_t>{1, 3, 4, 7, 8, 15, 16, 17, 33, 64, 65}) {
        const auto reference = trace_of(n);
        for (std::size_t at = 0; at < n; ++at) {
            for (int column = 0; column < 3; ++column) {
                auto candidate = reference;
                auto& changed = column == 0 ? candidate.chunk : column == 1 ? candidate.pos : candidate.target;
                for (std::size_t i = at; i < n; ++i) { changed[i] += 100; } // the later ones must not be named
                const auto describe = [at](const auto& trace) {
                    return "chunk " + std::to_string(trace.chunk[at]) + " pos " + std::to_string(trace.pos[at]) +
                           " target " + std::to_string(trace.target[at]);
                };
                CHECK(refusal(reference, candidate) ==
                      "not comparable: first difference at position " + std::to_string(at) + ": the reference has " +
                          describe(reference) + ", the candidate " + describe(candidate));
            }
        }
    }
}

TEST_CASE("the earliest of differences in several columns is named") {
    auto candidate = trace_of(20);
    candidate.chunk[9] = 7;
    candidate.pos[5] = 8;
    candidate.target[3] = 9;
    CHECK(refusal(trace_of(20), candidate) ==
          "not comparable: first difference at position 3: the reference has chunk 0 pos 3 target 1003, the candidate "
          "chunk 0 pos 3 target 9");
}

TEST_CASE("another number of positions") {
    CHECK(refusal(trace_of(12), trace_of(11)) ==
          "not comparable: the reference has 12 positions, the candidate 11; the first that the candidate lacks is "
          "chunk 1 pos 1 target 1011");
    CHECK(refusal(trace_of(10), trace_of(12)) ==
          "not comparable: the reference has 10 positions, the candidate 12; the first that the reference lacks is "
          "chunk 1 pos 0 target 1010");
    CHECK(refusal(trace_of(0), trace_of(1)) ==
          "not comparable: the reference has 0 positions, the candidate 1; the first that the reference lacks is "
          "chunk 0 pos 0 target 1000");
    auto candidate = trace_of(11);
    candidate.target[4] = 1;
    CHECK(refusal(trace_of(12), candidate).starts_with("not comparable: first difference at position 4: "));
}

TEST_CASE("each setting that changes the computation is a difference, also when one side does not state it") {
    for (const std::string key : {"tokens", "chunk_tokens", "prefill", "start_token", "contiguous"}) {
        CAPTURE(key);
        const auto one = metadata_of({{"corpus", "a.txt", key, "1"}}), other = metadata_of({{key, "2\x1b"}});
        const Metadata silent = metadata_of({{key}});
        using Differences = std::vector<std::string>;
        CHECK(like_for_like_differences(one, metadata_of({{key, "1"}})) == Differences{});
        CHECK(like_for_like_differences(one, other) ==
              Differences{"not like for like: " + key + R"( is '1' in the reference, '2\x1b' in the candidate)"});
        CHECK(like_for_like_differences(one, silent) ==
              Differences{"not like for like: " + key + " is '1' in the reference, not stated in the candidate"});
        CHECK(like_for_like_differences(silent, one) ==
              Differences{"not like for like: " + key + " is not stated in the reference, '1' in the candidate"});
        CHECK(like_for_like_differences(silent, Metadata()) == Differences{});
    }
}

TEST_CASE("what users compare may differ; several differences are all named") {
    const auto reference =
        metadata_of({{"model", "a"}, {"device", "x"}, {"topk", "8"}, {"tokens", "1"}, {"prefill", "0"}});
    CHECK(
        like_for_like_differences(
            reference, metadata_of({{"model", "b"}, {"device", "y"}, {"topk", "2"}, {"tokens", "1"}, {"prefill", "0"}}))
            .empty());
    CHECK(like_for_like_differences(reference, metadata_of({{"tokens", "2"}, {"prefill", "1"}})).size() == 2);
    CHECK(
        like_for_like_differences(reference, metadata_of({{"prefill", "0"}, {"chunks", "9", "tokens", "1"}})).empty());
    const auto long_value = metadata_of({{"tokens", std::string(5000, '1')}, {"prefill", "0"}});
    CHECK(like_for_like_differences(reference, long_value).at(0).size() < 150);
}

} // namespace test_comparability
