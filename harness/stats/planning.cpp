#include "harness/stats/planning.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>

#include "harness/stats/math_policy.h"

namespace fsbl {
namespace {

namespace bm = boost::math;

constexpr double kCertain = 8;  // standard deviations; beyond lies less than 1e-15

double normal_below(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

bool valid(double sd, uint64_t n, const TestDesign& design) {
  return std::isfinite(sd) && sd > 0 && n >= 2 && design.alpha > 0 && design.alpha < 0.5 &&
         std::isfinite(design.floor) && design.floor >= 0;
}

// No noncentrality overflows on the way to kMostBlocks.
bool comparable(double effect, double sd, const TestDesign& design) {
  const double root = std::sqrt(static_cast<double>(kMostBlocks));
  return std::isfinite(root * effect / sd) && std::isfinite(root * design.floor / sd);
}

bool invertible(const TestDesign& design) {
  return design.alpha < design.power && design.power < 1;
}

double critical_t(uint64_t n, double alpha) {
  const bm::students_t_distribution<double, NoThrow> t(static_cast<double>(n - 1));
  return bm::quantile(bm::complement(t, alpha));
}

// In units of the standard error of the mean: found if Z + shift > max(floor, critical * u), where u, the
// sample sd over sd, is chi over its root degrees. Below the u where the two meet only the floor binds;
// beyond, Z decides only where critical * u is within kCertain of shift. Narrow limits for u and Z keep the
// quadrature exact.
double power_in_errors(double shift, double floor, double critical, double degrees) {
  const bm::chi_squared_distribution<double, NoThrow> chi_squared(degrees);
  const auto below = [&](double u) { return bm::cdf(chi_squared, degrees * u * u); };
  const double meet = floor / critical, sure = std::max(meet, (shift - kCertain) / critical);
  const double met = below(meet);
  const double closed = met * normal_below(shift - floor) + below(sure) - met;
  const double width = kCertain / std::sqrt(2 * degrees);
  const double from = std::max(sure, 1 - width), to = std::min((shift + kCertain) / critical, 1 + width);
  if (from >= to) return closed;
  const double log_scale = std::log(2.0) + degrees / 2 * std::log(degrees / 2) - std::lgamma(degrees / 2);
  const auto found = [=](double u) {
    const double density = std::exp(log_scale + (degrees - 1) * std::log(u) - degrees * u * u / 2);
    return density * normal_below(shift - critical * u);
  };
  return std::min(1.0, closed + bm::quadrature::gauss<double, 30>::integrate(found, from, to));
}

double power_of(double effect, double sd, uint64_t n, double critical, const TestDesign& design) {
  const double root = std::sqrt(static_cast<double>(n));
  return power_in_errors(root * effect / sd, root * design.floor / sd, critical, static_cast<double>(n - 1));
}

}  // namespace

std::optional<double> detection_power(double effect, double sd, uint64_t n, const TestDesign& design) {
  if (!valid(sd, n, design) || !comparable(effect, sd, design)) return std::nullopt;
  return power_of(effect, sd, n, critical_t(n, design.alpha), design);
}

std::optional<double> minimum_detectable_effect(double sd, uint64_t n, const TestDesign& design) {
  if (!valid(sd, n, design) || !comparable(0, sd, design) || !invertible(design)) return std::nullopt;
  const double critical = critical_t(n, design.alpha);
  const double error = sd / std::sqrt(static_cast<double>(n));
  const auto missing = [&](double effect) {
    return power_of(effect, sd, n, critical, design) - design.power;
  };
  double high = design.floor + (critical + 1) * error;
  while (missing(high) < 0) high *= 2;
  std::uintmax_t steps = 200;
  return bm::tools::toms748_solve(missing, 0.0, high, bm::tools::eps_tolerance<double>(36), steps).second;
}

std::optional<uint64_t> planned_blocks(double effect, double sd, const TestDesign& design) {
  if (!valid(sd, kFewestBlocks, design) || !comparable(effect, sd, design) || !invertible(design))
    return std::nullopt;
  if (effect <= design.floor) return std::nullopt;
  const auto enough = [&](uint64_t n) {
    return power_of(effect, sd, n, critical_t(n, design.alpha), design) >= design.power;
  };
  // Outwards from the normal approximation, by doubling steps, to a bracket.
  const double alpha_tail = critical_t(kMostBlocks, design.alpha),
               power_tail = -critical_t(kMostBlocks, design.power);
  const double needed =
      std::max(sd * (alpha_tail + power_tail) / effect, sd * power_tail / (effect - design.floor));
  const auto guess =
      static_cast<uint64_t>(std::clamp(needed * needed, 1.0 * kFewestBlocks, 1.0 * kMostBlocks));
  uint64_t low = guess, high = guess;
  for (uint64_t step = 2; low > kFewestBlocks && enough(low); step *= 2)
    high = low, low -= std::min(step, low - kFewestBlocks);
  for (uint64_t step = 2; !enough(high); step *= 2) {
    if (high == kMostBlocks) return std::nullopt;
    low = high + 1;
    high += std::min(step, kMostBlocks - high);
  }
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (enough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

}  // namespace fsbl
