#include "harness/stats/stationarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/stats/interval.h"

namespace fsbl {
namespace {

constexpr double kLargestValue = 1e300;  // no difference overflows

Expected<> check(std::span<const double> values, const StationarityLimits& limits) {
  const std::string what = "stationarity of a window";
  if (!(limits.alpha > 0 && limits.alpha < 1))
    return bad_input(what, fmt::format("alpha is {}", limits.alpha), "give a value in (0, 1)");
  if (!(limits.tolerated_percent >= 0))
    return bad_input(what, fmt::format("tolerated drift is {} %", limits.tolerated_percent),
                     "give 0 or more");
  if (values.size() > kMostPoints)
    return bad_input(what, fmt::format("{} points, and {} are the limit", values.size(), kMostPoints),
                     "merge seconds into longer steps");
  for (size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i]) <= kLargestValue))
      return bad_input(what, fmt::format("point {} is {}", i + 1, values[i]));
  return {};
}

struct Pairs {
  double score = 0;  // S: pairs that rise less pairs that fall
  double slope = 0;  // median
};

Pairs compare_pairs(std::span<const double> values) {
  Pairs pairs;
  std::vector<double> slopes;
  slopes.reserve(values.size() * (values.size() - 1) / 2);
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i + 1; j < values.size(); ++j) {
      pairs.score += (values[j] > values[i]) - (values[j] < values[i]);
      const auto steps = static_cast<double>(j - i);
      slopes.push_back((values[j] - values[i]) / steps);
    }
  pairs.slope = median(std::move(slopes));
  return pairs;
}

struct Ties {
  double pairs = 0;     // pairs of equal values
  double variance = 0;  // what they take off 18 Var(S)
};

Ties count_ties(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  Ties ties;
  for (auto from = sorted.begin(); from != sorted.end();) {
    const auto to = std::upper_bound(from, sorted.end(), *from);
    const auto t = static_cast<double>(to - from);
    ties.pairs += t * (t - 1) / 2;
    ties.variance += t * (t - 1) * (2 * t + 5);
    from = to;
  }
  return ties;
}

}  // namespace

const char* to_string(Stationarity verdict) {
  switch (verdict) {
    case Stationarity::stationary:
      return "stationary";
    case Stationarity::drifting:
      return "drifting";
    case Stationarity::too_few_points:
      break;
  }
  return "too few points";
}

Expected<Trend> stationarity(std::span<const double> values, const StationarityLimits& limits) {
  FSBL_TRY(check(values, limits));
  Trend trend;
  trend.points = values.size();
  if (values.size() < kFewestPoints) return trend;
  const auto n = static_cast<double>(values.size());
  const Pairs pairs = compare_pairs(values);
  const Ties ties = count_ties(values);
  const double all = n * (n - 1) / 2;
  const double variance = (n * (n - 1) * (2 * n + 5) - ties.variance) / 18;
  trend.p = 1;
  if (ties.pairs < all) {
    trend.tau = pairs.score / std::sqrt(all * (all - ties.pairs));
    const double z = std::max(0.0, std::abs(pairs.score) - 1) / std::sqrt(variance);
    trend.p = std::erfc(z / std::sqrt(2.0));
  }
  trend.slope = pairs.slope;
  const double middle = median({values.begin(), values.end()});
  if (middle != 0) trend.drift_percent = 100 * (pairs.slope / std::abs(middle)) * (n - 1);
  const bool large = !trend.drift_percent || std::abs(*trend.drift_percent) > limits.tolerated_percent;
  trend.verdict = *trend.p < limits.alpha && large ? Stationarity::drifting : Stationarity::stationary;
  return trend;
}

}  // namespace fsbl
