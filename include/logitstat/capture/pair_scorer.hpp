#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "logitstat/capture/pair_columns.hpp"
#include "logitstat/capture/score_row.hpp"
#include "logitstat/logits/any_rows.hpp"
#include "logitstat/logits/kl_conventions.hpp"
#include "logitstat/logits/positions.hpp"
#include "logitstat/simd/compare_rows.hpp"

namespace logitstat::detail {

/// Fills the columns of a pair of arms, position by position.
template <class Arch> class PairScorer {
  public:
    PairScorer(const LogitsPositions& positions, std::size_t top_k, KlConventions kl, PairColumns& columns)
        : positions_(positions), top_k_(top_k), kl_(kl), columns_(columns) {}

    /// What one thread needs of its own.
    struct State {
        AnyRows reference, candidate;
        std::tuple<std::vector<float>, std::vector<double>> wide_reference, wide_candidate; ///< rows of unlike types
    };

    /// Fills position i. May be called for different positions at the same time.
    void score(State& state, std::size_t i) {
        std::visit(
            [&]<class R, class C>(std::span<const R> x, std::span<const C> y) {
                if constexpr (std::is_same_v<R, C>) {
                    score_rows(state, i, x, y);
                } else { // as one type, exactly: equal logits are then equal bytes, and less is compiled
                    using Wide = decltype(simd::wide_t<R>() + simd::wide_t<C>()); // double where either is
                    auto& a = std::get<std::vector<Wide>>(state.wide_reference);
                    auto& b = std::get<std::vector<Wide>>(state.wide_candidate);
                    a.resize(x.size());
                    b.resize(y.size());
                    std::ranges::transform(x, a.begin(), [](R z) { return static_cast<Wide>(simd::widen(z)); });
                    std::ranges::transform(y, b.begin(), [](C z) { return static_cast<Wide>(simd::widen(z)); });
                    score_rows(state, i, std::span<const Wide>(a), std::span<const Wide>(b));
                }
            },
            state.reference.row(i), state.candidate.row(i));
    }

    /// After all calls of `score` for positions below some one: the defects found there, by position.
    std::vector<PairDefect> take_defects() {
        std::ranges::sort(defects_, {}, &PairDefect::position);
        return std::exchange(defects_, {});
    }
    bool has_defects() const { return !defects_.empty(); }
    bool found_difference() const { return different_; }

  private:
    template <class T> void score_rows(const State& state, std::size_t i, std::span<const T> x, std::span<const T> y) {
        const std::int64_t target = positions_.target.empty() ? -1 : positions_.target[i];
        const simd::RowComparison pair = simd::compare_rows<Arch>(x, y, top_k_);
        PairDefect defect{i, row_defect(x, pair.reference, target, top_k_),
                          row_defect(y, pair.candidate, target, top_k_)};
        fill_trace(columns_.reference, i, x, pair.reference, target, defect.reference);
        fill_trace(columns_.candidate, i, y, pair.candidate, target, defect.candidate);
        if (defect.reference.empty() && defect.candidate.empty()) { fill(state, i, x, y, pair, target, defect); }
        const bool fine = defect.reference.empty() && defect.candidate.empty();
        if (!fine) { spoil(i); }
        const bool same = std::memcmp(x.data(), y.data(), x.size_bytes()) == 0; // ends at the first difference
        if (fine && same) { return; }
        const std::lock_guard lock(mutex_);
        different_ = true;
        if (!fine) { defects_.push_back(std::move(defect)); }
    }

    /// The figures of a pair without a defect, or else the defect that they are.
    template <class T>
    void fill(const State& state, std::size_t i, std::span<const T> x, std::span<const T> y,
              const simd::RowComparison& pair, std::int64_t target, PairDefect& defect) {
        const simd::RowDivergence& d = pair.divergence;
        columns_.kl[i] = d.kl;
        columns_.reverse_kl[i] = d.reverse_kl;
        columns_.jensen_shannon[i] = d.jensen_shannon;
        columns_.total_variation[i] = d.total_variation;
        columns_.logit_shift[i] = d.logit_shift;
        columns_.logit_rms[i] = d.logit_rms;
        columns_.logit_max[i] = d.logit_max;
        columns_.top_shared[i] = static_cast<double>(pair.top_shared) / static_cast<double>(top_k_);
        columns_.rank[i] = pair.rank;
        const double landed = value_at(y, pair.reference.best[0].id);
        columns_.landed_gap[i] = pair.candidate.best[0].logit - landed;
        columns_.landed_delta[i] = landed - pair.reference.best[0].logit;
        if (state.reference.holds_log_probabilities() != state.candidate.holds_log_probabilities()) {
            columns_.landed_delta[i] -= pair.candidate.sum.log_sum_exp() - pair.reference.sum.log_sum_exp();
        }
        double &p_nll = columns_.reference.nll[i], &q_nll = columns_.candidate.nll[i];
        if (target >= 0) { columns_.delta_p[i] = std::exp(-q_nll) - std::exp(-p_nll); }
        if (kl_.any()) {
            kl_.single_precision ? follow_conventions<float>(state, i, x, y, pair, target)
                                 : follow_conventions<double>(state, i, x, y, pair, target);
        }
        const auto blame = [](std::string& reason, double& nll, const char* why) {
            reason = why;
            nll = std::numeric_limits<double>::quiet_NaN();
        };
        const char* const beyond =
            kl_.single_precision ? "its NLL is beyond the range of float" : "its NLL is beyond the range of double";
        if (!simd::is_finite(p_nll)) { blame(defect.reference, p_nll, beyond); }
        if (!simd::is_finite(q_nll)) { blame(defect.candidate, q_nll, beyond); }
        if (!simd::is_finite(columns_.kl[i]) && !simd::is_infinite(columns_.kl[i])) {
            blame(defect.candidate, q_nll, "KL is beyond what its conventions can be computed in");
        }
    }

    /// A position with a defect has no figures.
    void spoil(std::size_t i) {
        for (auto* column : {&columns_.kl, &columns_.reverse_kl, &columns_.jensen_shannon, &columns_.total_variation,
                             &columns_.logit_shift, &columns_.logit_rms, &columns_.logit_max, &columns_.landed_delta,
                             &columns_.landed_gap, &columns_.top_shared, &columns_.delta_p}) {
            if (!column->empty()) { (*column)[i] = std::numeric_limits<double>::quiet_NaN(); }
        }
    }

    template <class T> static double value_at(std::span<const T> row, std::int64_t token) {
        return static_cast<double>(simd::widen(row[static_cast<std::size_t>(token)]));
    }

    template <class T>
    void fill_trace(Trace<double>& trace, std::size_t i, std::span<const T> row, const simd::RowSummary& summary,
                    std::int64_t target, const std::string& defect) const {
        const std::size_t n = trace.size();
        const bool fine = defect.empty();
        const double nothing = std::numeric_limits<double>::quiet_NaN();
        trace.target[i] = static_cast<token_id>(target);
        trace.nll[i] = !fine ? nothing : target < 0 ? 0.0 : summary.sum.nll(value_at(row, target));
        for (std::size_t j = 0; j < top_k_; ++j) {
            trace.top_ids[j * n + i] = fine ? summary.best[j].id : static_cast<token_id>(j);
            trace.top_logits[j * n + i] = fine ? summary.best[j].logit : nothing;
        }
    }

    /// Another tool's figures in the place of those that are defined otherwise there.
    template <class Real, class T>
    void follow_conventions(const State& state, std::size_t i, std::span<const T> x, std::span<const T> y,
                            const simd::RowComparison& pair, std::int64_t target) {
        const auto normalized = [&](const AnyRows& rows, std::span<const T> row, const simd::RowSum& sum) {
            const bool as_is = kl_.as_stored && rows.holds_log_probabilities();
            return as_is ? ConventionalRow<Real>() : ConventionalRow<Real>(row, sum.max);
        };
        const auto p = normalized(state.reference, x, pair.reference.sum);
        const auto q = normalized(state.candidate, y, pair.candidate.sum);
        columns_.kl[i] = p.kl(x, y, q, kl_.skip_below);
        if (target < 0) { return; }
        const Real p_nll = p.nll(x[static_cast<std::size_t>(target)]),
                   q_nll = q.nll(y[static_cast<std::size_t>(target)]);
        columns_.reference.nll[i] = static_cast<double>(p_nll);
        columns_.candidate.nll[i] = static_cast<double>(q_nll);
        columns_.delta_p[i] = static_cast<double>(std::exp(-q_nll) - std::exp(-p_nll));
    }

    const LogitsPositions& positions_;
    std::size_t top_k_;
    KlConventions kl_;
    PairColumns& columns_;
    std::mutex mutex_;
    std::vector<PairDefect> defects_;
    bool different_ = false;
};

} // namespace logitstat::detail
