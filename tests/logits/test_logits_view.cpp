#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/logits/logits_view.hpp"

namespace test_logits_view {

using logitstat::LogitsView;
using logitstat::ShardedLogits;
using testing::message_of;

namespace {

static_assert(logitstat::logits_rows<LogitsView<float>> && logitstat::logits_rows<ShardedLogits<Eigen::bfloat16>>);
static_assert(!logitstat::logit_value<int> && !logitstat::logit_value<long double>);

std::vector<float> counting(std::size_t n) {
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 0.0f);
    return values;
}
std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

} // namespace

TEST_CASE("rows of a view, with and without padding") {
    const auto values = counting(11);
    const LogitsView<float> packed(values, 3, 3);
    CHECK(packed.size() == 3);
    CHECK(packed.vocabulary() == 3);
    CHECK(packed.stride() == 3);
    CHECK(copy(packed.row(2)) == std::vector<float>{6, 7, 8});
    const LogitsView<float> padded(values, 3, 3, 4); // the last row needs no padding: 11 values are enough
    CHECK(copy(padded.row(1)) == std::vector<float>{4, 5, 6});
    CHECK(copy(padded.row(2)) == std::vector<float>{8, 9, 10});
    CHECK(LogitsView<float>().size() == 0);
    CHECK(LogitsView<float>({}, 0, 3).size() == 0);
}

TEST_CASE("a view that would reach beyond its values is refused") {
    const auto values = counting(11);
    const auto refusal = [&](std::size_t rows, std::size_t vocabulary, std::size_t stride) {
        return message_of<std::invalid_argument>([&] { LogitsView<float>(values, rows, vocabulary, stride); });
    };
    CHECK(refusal(4, 3, 3) == "logits: 11 values are too few for 4 rows of 3");
    CHECK(refusal(3, 4, 4) == "logits: 11 values are too few for 3 rows of 4");
    CHECK(refusal(3, 2, 5) == "logits: 11 values are too few for 3 rows of 2");
    CHECK(refusal(1, 12, 12) == "logits: 11 values are too few for 1 rows of 12");
    CHECK(refusal(SIZE_MAX, 3, 3) == "logits: 11 values are too few for 18446744073709551615 rows of 3");
    CHECK(refusal((SIZE_MAX / 4) + 2, 4, 4) == // rows times stride wraps to 4
          "logits: 11 values are too few for 4611686018427387905 rows of 4");
    CHECK(refusal(2, 3, 2) == "logits: a stride of 2 is below the vocabulary of 3");
    CHECK(refusal(2, 0, 0) == "logits: a vocabulary of 0");
    CHECK(refusal(2, 3, SIZE_MAX) == "logits: 11 values are too few for 2 rows of 3");
    CHECK_NOTHROW(LogitsView<float>(values, 1, 3, SIZE_MAX));
}

TEST_CASE("shards follow each other, empty ones too") {
    const auto values = counting(12);
    const std::span<const float> all = values;
    const LogitsView<float> first(all.first(4), 2, 2), none(all.first(0), 0, 2), second(all.subspan(4, 3), 1, 2, 3),
        third(all.subspan(8), 2, 2);
    const ShardedLogits<float> rows({none, first, none, second, third, none});
    CHECK(rows.size() == 5);
    CHECK(rows.vocabulary() == 2);
    CHECK(rows.shards().size() == 6);
    const std::vector<std::vector<float>> expected{{0, 1}, {2, 3}, {4, 5}, {8, 9}, {10, 11}};
    for (std::size_t i = 0; i < expected.size(); ++i) { CHECK(copy(rows.row(i)) == expected[i]); }
    CHECK(ShardedLogits<float>().size() == 0);
    CHECK(ShardedLogits<float>().vocabulary() == 0);
    CHECK(message_of<std::invalid_argument>([&] {
              ShardedLogits<float>({first, LogitsView<float>(all, 1, 3)});
          }) == "logits: shards of different vocabularies, 2 and 3");
}

} // namespace test_logits_view
