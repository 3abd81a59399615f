// Intervals over runs (METHOD.md, "Runs and intervals"). Pure functions; the unit of replication is the run.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fsbl {

struct Interval {
  double lo = 0, hi = 0;
  double level = 0;    // true coverage, e.g. 0.75 for the range of n = 3
  std::string method;  // "range", "order statistics", "t on paired log-ratios (normality assumed)"
};

double median(std::vector<double> values);  // mean of the two middle ones for even n; needs n >= 1

// Interval for the median of the distribution that the runs are drawn from:
// n < 2 none; n < 6 the range, with its true level 1 - 2^(1-n); n >= 6 the narrowest symmetric pair of order
// statistics with coverage >= level (binomial, exact), with its exact coverage.
std::optional<Interval> median_interval(std::vector<double> values, double level = 0.95);

struct Ratio {
  double value = 0;                  // exp(mean of log(candidate/base))
  std::optional<Interval> interval;  // Student t, n - 1 degrees of freedom; n >= 2
};
// Pairs from the same block; every value must be > 0, otherwise nullopt.
std::optional<Ratio> paired_ratio(std::span<const double> candidate, std::span<const double> base,
                                  double level = 0.95);

// Coefficient of variation (sample standard deviation / mean); nullopt for n < 2 or mean 0.
std::optional<double> coefficient_of_variation(std::span<const double> values);

// Indices of values farther than `limit` scaled MADs (1.4826 MAD) from the median. Flagged, never deleted.
std::vector<size_t> mad_outliers(std::span<const double> values, double limit = 3.5);

// Samples that must stand behind a tail quantile before it is printed: smallest n with 1 - q^n >= 0.95
// (p99: 299, p99.9: 2995, p99.99: 29956), in exact arithmetic.
uint64_t samples_needed(double q);

}  // namespace fsbl
