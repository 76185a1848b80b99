// Every instruction set that this processor has, in one program that is compiled for none of them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/capture/score_row.hpp"
#include "logitstat/simd/compare_rows.hpp"
#include "logitstat/simd/dispatch.hpp"
#include "logitstat/simd/kernel_choice.hpp"
#include "simd/pairs.hpp"
#include "simd/rows.hpp"

using logitstat::simd::KernelTable;
using logitstat::simd::RowSummary;
using logitstat::simd::supported_kernels;
using rows::bfloat16;
using rows::half;

static_assert(std::is_same_v<logitstat::simd::preferred_arch, logitstat::simd::dispatched>);

namespace {

/// f(Arch) with each set as the Arch.
template <class F> void for_each_set(const F& f) {
    const std::size_t sets = supported_kernels().size();
    REQUIRE((sets >= 1 && sets <= 3));
    f(logitstat::simd::supported<0>{});
    if (sets > 1) { f(logitstat::simd::supported<1>{}); }
    if (sets > 2) { f(logitstat::simd::supported<2>{}); }
}

/// The k best exactly, the NLL of every finite target near the truth.
template <class T>
void expect_summary(const RowSummary& got, std::span<const T> row, const std::vector<std::int32_t>& ranking,
                    std::size_t k, long double log_sum) {
    REQUIRE(got.best.size() == std::min(k, row.size()));
    for (std::size_t j = 0; j < got.best.size(); ++j) {
        REQUIRE(got.best[j].id == ranking[j]);
        const T logit = row[static_cast<std::size_t>(ranking[j])];
        if (rows::is_minus_infinity(logit)) {
            CHECK(rows::is_minus_infinity(got.best[j].logit));
        } else {
            CHECK(static_cast<long double>(got.best[j].logit) == rows::value(logit));
        }
    }
    for (const std::size_t target : {std::size_t{0}, row.size() / 2, row.size() - 1}) {
        if (rows::is_minus_infinity(row[target])) { continue; }
        const long double truth = log_sum - rows::value(row[target]);
        CHECK(pairs::is_near(logitstat::simd::target_nll(row, got.sum, target), truth,
                             std::is_same_v<T, double> ? 1e-12L : 2e-6L, 4e-16L));
    }
}

/// Both rows, surrounded by NaN at these misalignments, with every set against the definitions.
template <class R, class C>
void expect_true(const std::vector<R>& x, const std::vector<C>& y, std::initializer_list<std::size_t> shifts) {
    constexpr std::size_t k = 8;
    const std::span<const R> all_x(x);
    const std::span<const C> all_y(y);
    const auto truth = pairs::truth_of(all_x, all_y, k);
    const auto ours = rows::ranking(all_x), theirs = rows::ranking(all_y);
    for (const std::size_t shift : shifts) {
        const rows::Surrounded<R> placed_x(x, shift);
        const rows::Surrounded<C> placed_y(y, shift / 2);
        for_each_set([&](auto arch) {
            using Arch = decltype(arch);
            CAPTURE(Arch::kernels().name);
            CAPTURE(x.size());
            CAPTURE(shift);
            const auto result = logitstat::simd::compare_rows<Arch>(placed_x.span(), placed_y.span(), k);
            pairs::expect_near<R, C>(result, truth);
            expect_summary(result.reference, placed_x.span(), ours, k, truth.log_sum_p);
            expect_summary(result.candidate, placed_y.span(), theirs, k, truth.log_sum_q);
            const auto best = static_cast<std::size_t>(ours[0]); // also where the list of the k best has the answer
            CHECK(logitstat::simd::rank_of<Arch>(placed_y.span(), best) == truth.rank);
        });
    }
}

template <class R, class C> struct Types {
    using Reference = R;
    using Candidate = C;
};
#define EVERY_PAIR                                                                                                     \
    Types<float, float>, Types<half, half>, Types<bfloat16, bfloat16>, Types<double, double>, Types<half, bfloat16>,   \
        Types<double, float>

} // namespace

TEST_CASE_TEMPLATE("rows and pairs of rows with every instruction set, against long double", T, EVERY_PAIR) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    for (const std::size_t n : {1u, 2u, 3u, 7u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 64u, 65u, 1000u, 2100u}) {
        CAPTURE(n);
        const auto x = rows::like_a_model<R>(n, n);
        auto y = pairs::disturbed<C>(x, 0.5);
        expect_true(x, y, {0, 1, 3, 8, 17});
        auto masked = x;
        for (std::size_t i = 1; i < n; i += 3) {
            masked[i] = rows::minus_infinity<R>();
            if (i % 2 == 0) { y[i] = rows::minus_infinity<C>(); }
        }
        expect_true(masked, y, {0, 5});
    }
    for (const std::size_t n : {32'000u, 151'936u, 262'144u}) {
        auto x = rows::like_a_model<R>(n, n);
        auto y = pairs::disturbed<C>(x, 0.05);
        for (std::size_t i = 100; i < n; i += 1009) { // masked in both
            x[i] = rows::minus_infinity<R>();
            y[i] = rows::minus_infinity<C>();
        }
        for (const std::size_t i : {1023u, 1024u, 2047u, 2048u, 31'743u, 31'744u}) { // the best, and each other's equal
            x[i] = static_cast<R>(20.f);
            y[i + 1] = static_cast<C>(20.f);
        }
        expect_true(x, y, {1});
    }
}

TEST_CASE_TEMPLATE("ties across the borders of blocks, with every instruction set", T, EVERY_PAIR) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    for (const std::size_t n : {65u, 1025u, 3100u, 20'000u}) {
        for (const unsigned distinct : {1u, 3u, 30u}) {
            std::vector<R> x(n);
            std::vector<C> y(n);
            for (std::size_t i = 0; i < n; ++i) {
                x[i] = static_cast<R>(static_cast<float>(i * 7919 % distinct));
                y[i] = static_cast<C>(static_cast<float>(i * 104'729 % (distinct + 1)));
            }
            expect_true(x, y, {0, 3});
        }
    }
}

TEST_CASE_TEMPLATE("NaN and +infinity are found by every instruction set", T, float, half, bfloat16, double) {
    std::size_t missed = 0, found = 0;
    for (const std::size_t n : {1u, 63u, 64u, 65u, 1100u}) {
        auto row = rows::like_a_model<T>(n, 1);
        for (std::size_t at = 0; at < n; at += 1 + n / 90) {
            const T kept = row[at];
            for (const T bad : rows::forbidden<T>()) {
                row[at] = bad;
                for_each_set([&](auto arch) {
                    const auto sum = logitstat::simd::log_sum_exp<decltype(arch)>(std::span<const T>(row));
                    (sum.refused == at ? found : missed) += 1;
                });
            }
            row[at] = kept;
        }
    }
    CHECK(missed == 0);
    CHECK(found > 0);
}

TEST_CASE("a table by its name, the widest without one, an error that names what there is") {
    using logitstat::simd::detail::choose_kernels;
    const std::array<KernelTable, 2> tables{KernelTable{.name = "narrow", .rows = {}, .pairs = {}},
                                            KernelTable{.name = "wide", .rows = {}, .pairs = {}}};
    const std::array<const KernelTable*, 2> both{&tables[0], &tables[1]};
    CHECK(&choose_kernels(both, nullptr) == both[1]);
    CHECK(&choose_kernels(both, "") == both[1]);
    CHECK(&choose_kernels(both, "narrow") == both[0]);
    CHECK(&choose_kernels(both, "wide") == both[1]);
    CHECK_THROWS_WITH_AS(choose_kernels(both, "Wide"), "LOGITSTAT_SIMD is \"Wide\"; this processor has: narrow, wide",
                         std::runtime_error);
}

TEST_CASE("the tables that there are, narrowest first") {
    std::vector<std::string> names;
    for (const KernelTable* const table : supported_kernels()) { names.emplace_back(table->name); }
    const std::vector<std::string> all{"sse2", "avx2", "avx512"};
#if defined(__x86_64__)
    CHECK(names == std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(names.size())));
#else
    CHECK(names.size() == 1);
#endif
    CHECK_THROWS_AS(logitstat::simd::supported<3>::kernels(), std::out_of_range);
}

TEST_CASE("LOGITSTAT_SIMD is obeyed by what uses the default") { // ctest runs this with several values
    const char* const value = std::getenv("LOGITSTAT_SIMD");
    const std::string wanted = value == nullptr ? supported_kernels().back()->name : value;
    const bool is_there =
        std::ranges::any_of(supported_kernels(), [&](const KernelTable* table) { return wanted == table->name; });
    const std::vector<float> row{1, 2, 3};
    if (is_there) {
        CHECK(logitstat::simd::dispatched_arch_name() == wanted);
        CHECK(logitstat::score_row(row, 0, 2).ids == std::vector<std::int32_t>{2, 1});
    } else {
        CHECK_THROWS_AS(logitstat::simd::dispatched_arch_name(), std::runtime_error);
        CHECK_THROWS_AS(logitstat::score_row(row, 0, 2), std::runtime_error);
        const std::span<const float> span(row);
        CHECK_THROWS_AS(logitstat::simd::compare_rows(span, span, 2), std::runtime_error);
    }
}
