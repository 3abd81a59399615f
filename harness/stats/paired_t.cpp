#include "harness/stats/paired_t.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "harness/stats/math_policy.h"

namespace fsbl {
namespace {

namespace bm = boost::math;
using StudentsT = bm::students_t_distribution<double, NoThrow>;

double degrees(const PairedT& sample) {
  return static_cast<double>(sample.n - 1);
}

double standard_error(const PairedT& sample) {
  return sample.sd / std::sqrt(static_cast<double>(sample.n));
}

double t_of(const PairedT& sample, double null_mean) {
  return (sample.mean - null_mean) / standard_error(sample);
}

double half_width(const PairedT& sample, double level) {
  return bm::quantile(StudentsT(degrees(sample)), level) * standard_error(sample);
}

}  // namespace

std::optional<PairedT> paired_t(std::span<const double> differences) {
  const size_t n = differences.size();
  if (n < 2) return std::nullopt;
  // Around the first value: equal values have variance 0 exactly, not a rounding error's.
  const double origin = differences.front();
  double sum = 0;
  for (const double value : differences) sum += value - origin;
  const double shift = sum / static_cast<double>(n);
  double squares = 0;
  for (const double value : differences) squares += (value - origin - shift) * (value - origin - shift);
  const PairedT sample{n, origin + shift, std::sqrt(squares / static_cast<double>(n - 1))};
  if (!std::isfinite(sample.mean) || !std::isfinite(sample.sd) || sample.sd == 0) return std::nullopt;
  return sample;
}

double p_above(const PairedT& sample, double null_mean) {
  return bm::cdf(bm::complement(StudentsT(degrees(sample)), t_of(sample, null_mean)));
}

double p_below(const PairedT& sample, double null_mean) {
  return bm::cdf(StudentsT(degrees(sample)), t_of(sample, null_mean));
}

double lower_bound(const PairedT& sample, double level) {
  return sample.mean - half_width(sample, level);
}

double upper_bound(const PairedT& sample, double level) {
  return sample.mean + half_width(sample, level);
}

}  // namespace fsbl
