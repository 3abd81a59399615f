// One-sample Student t on paired differences (Student, "The probable error of a mean", Biometrika 6, 1908):
// normality of the differences is assumed. Pure functions; differences are in any one unit (log-ratios here).
#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace fsbl {

struct PairedT {
  size_t n = 0;     // >= 2
  double mean = 0;  // of the differences
  double sd = 0;    // sample standard deviation (n - 1), > 0
};
// nullopt: n < 2, a value or a moment is not finite, or all values are equal (t is then undefined).
std::optional<PairedT> paired_t(std::span<const double> differences);

// One-sided p, n - 1 degrees of freedom; above: null "mean <= null_mean", below: null "mean >= null_mean".
double p_above(const PairedT& sample, double null_mean);
double p_below(const PairedT& sample, double null_mean);

// One-sided confidence bounds of the mean, 0 < level < 1; dual to the tests:
// upper_bound(level) < d exactly if p_below(d) < 1 - level, but for rounding.
double lower_bound(const PairedT& sample, double level);
double upper_bound(const PairedT& sample, double level);

}  // namespace fsbl
