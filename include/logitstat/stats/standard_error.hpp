#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "logitstat/simd/dot.hpp"
#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/moments.hpp"

/// Standard errors of a mean over positions of text, which are not independent of their neighbours.
namespace logitstat {

/// How dependence between positions is accounted for.
enum class dependence {
    iid,       ///< not at all
    clustered, ///< any within a chunk, none between chunks
    hac        ///< fading with distance along the trace (heteroskedasticity and autocorrelation consistent)
};

/// The enumerator's name.
constexpr std::string_view to_string(dependence kind) {
    switch (kind) {
    case dependence::iid: return "iid";
    case dependence::clustered: return "clustered";
    case dependence::hac: return "hac";
    }
    return "unknown";
}

/// Below this number of chunks the clustered error is itself too uncertain to lean on (Cameron and Miller 2015, section
/// VI, put "few" at 20 to 50).
inline constexpr std::size_t many_clusters = 30;

/// The three standard errors of one mean, and which to believe. An error is nothing also where squares leave double's
/// range.
struct StandardErrors {
    std::size_t n = 0,               ///< values
        clusters = 0;                ///< chunks that they belong to
    std::size_t lag = 0;             ///< of the autocorrelation-consistent error
    std::optional<double> iid;       ///< nothing for n < 2
    std::optional<double> clustered; ///< nothing for fewer than 2 clusters
    std::optional<double> hac;       ///< nothing for n < 2

    /// Many chunks: clustered, which assumes least. Few long chunks: autocorrelation-consistent, but iid where that is
    /// larger, since in a short text an estimate below it is more likely chance than negative correlation.
    dependence preferred() const {
        if (clusters >= many_clusters) { return dependence::clustered; }
        return hac && iid && *hac < *iid ? dependence::iid : dependence::hac;
    }
    /// The preferred error; nothing where that one does not exist.
    std::optional<double> value() const {
        return preferred() == dependence::clustered ? clustered : preferred() == dependence::hac ? hac : iid;
    }
    /// Degrees of freedom for Student's t with the preferred error: clusters - 1, or n - 1.
    double df() const { return static_cast<double>(preferred() == dependence::clustered ? clusters : n) - 1; }
};

/// Newey and West's usual lag, floor(4 (n / 100)^(2/9)), below n.
inline std::size_t default_lag(std::size_t n) {
    const auto lag = static_cast<std::size_t>(4 * std::pow(static_cast<double>(n) / 100, 2.0 / 9));
    return n == 0 ? 0 : (std::min)(lag, n - 1);
}

/// Clustered standard error of the mean of x: with e = x - mean and S_c the sum of e over cluster c of G,
///   var = G / (G - 1) sum S_c^2 / n^2   (Liang and Zeger 1986, doi:10.1093/biomet/73.1.13).
/// With one position a cluster it is the iid error. Nothing for fewer than two clusters, or when squares leave
/// double's range. `boundaries` as `cluster_boundaries`. O(n). Throws std::invalid_argument when they do not cover x in
/// order.
inline std::optional<double> clustered_se(std::span<const double> x, std::span<const std::size_t> boundaries) {
    check_boundaries(boundaries, x.size());
    if (boundaries.size() < 3) { return std::nullopt; }
    const double mean = moments_of(x).mean;
    double squares = 0;
    for (std::size_t c = 0; c + 1 < boundaries.size(); ++c) {
        double sum = 0;
        for (std::size_t i = boundaries[c]; i < boundaries[c + 1]; ++i) { sum += x[i] - mean; }
        squares += sum * sum;
    }
    const auto groups = static_cast<double>(boundaries.size() - 1), n = static_cast<double>(x.size());
    if (!simd::is_finite(squares)) { return std::nullopt; }
    return std::sqrt(groups / (groups - 1) * squares) / n;
}

/// Autocorrelation-consistent standard error of the mean of x (Newey and West 1987, doi:10.2307/1913610): Bartlett
/// weights w_l = 1 - l / (lag + 1),
///   var = n / (n - 1) (sum_i e_i^2 + 2 sum_l w_l sum_i e_i e_(i-l)) / n^2,
/// so that lag 0 is the iid error. Products never reach across a boundary: pass {0, n} for one running text, or
/// `cluster_boundaries` when chunks are separate documents. Nothing for n < 2 or when squares leave
/// double's range. O(n min(lag, n)). Throws as above.
inline std::optional<double> hac_se(std::span<const double> x, std::size_t lag,
                                    std::span<const std::size_t> boundaries) {
    check_boundaries(boundaries, x.size());
    if (x.size() < 2) { return std::nullopt; }
    const double mean = moments_of(x).mean;
    std::vector<double> e(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) { e[i] = x[i] - mean; }
    double sum = 0;
    for (std::size_t c = 0; c + 1 < boundaries.size(); ++c) {
        const std::span<const double> run(e.data() + boundaries[c], boundaries[c + 1] - boundaries[c]);
        for (std::size_t l = 0; l <= lag && l < run.size(); ++l) {
            const double weight = l == 0 ? 1.0 : 2 * (1 - static_cast<double>(l) / (static_cast<double>(lag) + 1));
            sum += weight * simd::dot(run.subspan(l), run.first(run.size() - l));
        }
    }
    const auto n = static_cast<double>(x.size());
    if (!simd::is_finite(sum)) { return std::nullopt; }
    return std::sqrt((std::max)(sum, 0.0) / (n * (n - 1))); // Bartlett weights keep the exact sum >= 0
}

/// What can be chosen about the autocorrelation-consistent error.
struct HacOptions {
    std::optional<std::size_t> lag = {}; ///< nothing: default_lag(n)
    bool stop_at_chunk_borders = false;  ///< chunks are separate documents, not consecutive text
};

/// The three standard errors of the mean of x, whose positions belong to the given chunks. O(n lag).
/// Throws std::invalid_argument when the chunks do not cover x in order, or for a given lag above 0 that is not below
/// n. Precondition: finite values.
inline StandardErrors standard_errors(std::span<const double> x, std::span<const std::size_t> boundaries,
                                      const HacOptions& options = {}) {
    StandardErrors se;
    check_boundaries(boundaries, x.size());
    se.n = x.size();
    se.clusters = boundaries.size() - 1;
    se.lag = options.lag.value_or(default_lag(x.size()));
    if (options.lag && *options.lag > 0 && *options.lag >= x.size()) {
        throw std::invalid_argument("a lag of " + std::to_string(*options.lag) + " needs more than " +
                                    std::to_string(x.size()) + " positions");
    }
    se.iid = moments_of(x).standard_error();
    se.clustered = clustered_se(x, boundaries);
    const std::size_t whole[] = {0, x.size()};
    se.hac = hac_se(x, se.lag, options.stop_at_chunk_borders ? boundaries : std::span<const std::size_t>(whole));
    return se;
}

} // namespace logitstat
