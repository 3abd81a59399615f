#include "harness/stats/permutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/core/random.h"

namespace fsbl {
namespace {

constexpr double kTie = 1e-12;

// Sums of all subsets, ascending.
std::vector<double> subset_sums(std::span<const double> values) {
  std::vector<double> sums{0};
  sums.reserve(size_t{1} << values.size());
  for (const double value : values) {
    const size_t count = sums.size();
    for (size_t i = 0; i < count; ++i) sums.push_back(sums[i] + value);
  }
  std::sort(sums.begin(), sums.end());
  return sums;
}

// Flipping the signs of a subset takes twice its sum off, so a sign vector reaches the observed sum exactly
// if the sum of the flipped values is <= 0. The subsets are counted by halves (Horowitz and Sahni, "Computing
// partitions with applications to the knapsack problem", J. ACM 21, 1974).
double exact_p(std::span<const double> values, double tie) {
  const size_t half = values.size() / 2;
  const std::vector<double> left = subset_sums(values.first(half));
  const std::vector<double> right = subset_sums(values.subspan(half));
  uint64_t reached = 0;
  size_t fitting = right.size();
  for (const double sum : left) {
    while (fitting > 0 && sum + right[fitting - 1] > tie) --fitting;
    reached += fitting;
  }
  return std::ldexp(static_cast<double>(reached), -static_cast<int>(values.size()));
}

double monte_carlo_p(std::span<const double> values, double tie, const SignFlipOptions& options) {
  SplitMix64 random(options.seed);
  uint64_t reached = 1;  // the identity
  for (uint64_t resample = 0; resample < options.resamples; ++resample) {
    double flipped = 0;
    uint64_t bits = 0;
    for (size_t i = 0; i < values.size(); ++i, bits >>= 1) {
      if (i % 64 == 0) bits = random.next();
      flipped += static_cast<double>(bits & 1) * values[i];
    }
    reached += flipped <= tie;
  }
  return static_cast<double>(reached) / (static_cast<double>(options.resamples) + 1);
}

}  // namespace

Expected<SignFlip> sign_flip_test(std::span<const double> differences, const SignFlipOptions& options) {
  const std::string what = "sign-flip test";
  if (differences.empty()) return bad_input(what, "no differences");
  if (options.resamples == 0) return bad_input(what, "0 resamples", "ask for 1 or more");
  std::vector<double> values;
  double largest = 0;
  for (const double difference : differences) {
    values.push_back(difference - options.null_mean);
    if (!std::isfinite(values.back()))
      return bad_input(
          what, fmt::format("difference {} is {}, less {}", values.size(), difference, options.null_mean),
          "give finite differences");
    largest = std::max(largest, std::abs(values.back()));
  }
  double absolute = 0;
  for (double& value : values) {
    if (largest > 0) value /= largest;  // no sum overflows
    absolute += std::abs(value);
  }
  const double tie = kTie * absolute;
  if (values.size() <= kExactSignFlips) return SignFlip{exact_p(values, tie), "exact"};
  return SignFlip{monte_carlo_p(values, tie, options), fmt::format("Monte Carlo, m={}", options.resamples)};
}

}  // namespace fsbl
