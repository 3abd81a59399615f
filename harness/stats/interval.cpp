#include "harness/stats/interval.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace fsbl {
namespace {

namespace bm = boost::math;
// Errors become NaN or infinity instead of exceptions.
using NoThrow = bm::policies::policy<bm::policies::domain_error<bm::policies::ignore_error>,
                                     bm::policies::pole_error<bm::policies::ignore_error>,
                                     bm::policies::overflow_error<bm::policies::ignore_error>,
                                     bm::policies::evaluation_error<bm::policies::ignore_error>>;

constexpr size_t kRunsForOrderStatistics = 6;  // below, not even the range covers 95 %
constexpr double kScaledMad = 1.4826;          // makes the MAD an estimate of sigma for normal data

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double sample_deviation(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// P(the median lies between the r-th smallest and the r-th largest of n), r from 1.
double coverage(size_t n, size_t r) {
  const bm::binomial_distribution<double, NoThrow> below(static_cast<double>(n), 0.5);
  return 1 - 2 * bm::cdf(below, static_cast<double>(r - 1));
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : std::midpoint(values[middle - 1], values[middle]);
}

std::optional<Interval> median_interval(std::vector<double> values, double level) {
  const size_t n = values.size();
  if (n < 2) return std::nullopt;
  std::sort(values.begin(), values.end());
  if (n < kRunsForOrderStatistics || coverage(n, 1) < level)
    return Interval{values.front(), values.back(), 1 - std::ldexp(1.0, 1 - static_cast<int>(n)), "range"};
  size_t r = 1;
  while (2 * (r + 1) <= n && coverage(n, r + 1) >= level) ++r;
  return Interval{values[r - 1], values[n - r], coverage(n, r), "order statistics"};
}

std::optional<Ratio> paired_ratio(std::span<const double> candidate, std::span<const double> base,
                                  double level) {
  const size_t n = candidate.size();
  if (n == 0 || base.size() != n) return std::nullopt;
  std::vector<double> logs;
  for (size_t i = 0; i < n; ++i) {
    if (!(candidate[i] > 0 && base[i] > 0)) return std::nullopt;
    logs.push_back(std::log(candidate[i]) - std::log(base[i]));
  }
  const double mean = mean_of(logs);
  Ratio ratio{std::exp(mean), std::nullopt};
  if (n >= 2) {
    const bm::students_t_distribution<double, NoThrow> t(static_cast<double>(n - 1));
    const double half =
        bm::quantile(t, (1 + level) / 2) * sample_deviation(logs) / std::sqrt(static_cast<double>(n));
    ratio.interval = Interval{std::exp(mean - half), std::exp(mean + half), level,
                              "t on paired log-ratios (normality assumed)"};
  }
  return ratio;
}

std::optional<double> coefficient_of_variation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double mean = mean_of(values);
  if (mean == 0) return std::nullopt;
  return sample_deviation(values) / mean;
}

std::vector<size_t> mad_outliers(std::span<const double> values, double limit) {
  if (values.empty()) return {};
  const double center = median({values.begin(), values.end()});
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - center));
  const double scaled = kScaledMad * median(distances);
  std::vector<size_t> outliers;
  for (size_t i = 0; i < values.size(); ++i)
    if (distances[i] > limit * scaled) outliers.push_back(i);
  return outliers;
}

uint64_t samples_needed(double q) {
  if (!(q > 0)) return 1;
  if (q >= 1) return std::numeric_limits<uint64_t>::max();
  const auto enough = [q](uint64_t n) { return std::pow(static_cast<long double>(q), n) <= 0.05; };
  // The logarithms give the answer but for their rounding; the definition decides.
  auto n = static_cast<uint64_t>(
      std::max(1.0L, std::ceil(std::log(0.05L) / std::log(static_cast<long double>(q)))));
  while (n > 1 && enough(n - 1)) --n;
  while (!enough(n)) ++n;
  return n;
}

}  // namespace fsbl
