// Every statistic against a brute-force oracle: enumeration, simulation or numerical integration.
#include "harness/stats/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/core/random.h"

namespace fsbl {
namespace {

double uniform(SplitMix64& random) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53;
}

// Sum of 12 uniforms: normal enough for coverage within a per cent.
double normal(SplitMix64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(random);
  return sum;
}

TEST(Median, OddEvenOne) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({1.7e308, 1.7e308}), 1.7e308) << "no overflow on the way";
}

// Each run lies below the true median with probability 1/2: of the 2^n equally likely patterns, count those
// in which the median lies between the r-th smallest and the r-th largest run.
double coverage_by_enumeration(size_t n, size_t r) {
  size_t covered = 0;
  for (uint32_t pattern = 0; pattern < 1u << n; ++pattern) {
    const auto below = static_cast<size_t>(std::popcount(pattern));
    covered += below >= r && below <= n - r;
  }
  return static_cast<double>(covered) / static_cast<double>(1u << n);
}

TEST(MedianInterval, LevelsAreThoseOfEnumeration) {
  for (size_t n = 2; n <= 18; ++n) {
    std::vector<double> values;
    for (size_t i = 1; i <= n; ++i) values.push_back(static_cast<double>(i * 10));
    const auto interval = median_interval(values);
    ASSERT_TRUE(interval);
    const auto r = static_cast<size_t>(interval->lo / 10);
    EXPECT_EQ(interval->hi, static_cast<double>((n + 1 - r) * 10)) << "symmetric";
    EXPECT_NEAR(interval->level, coverage_by_enumeration(n, r), 1e-12) << n;
    EXPECT_EQ(interval->method, n < 6 ? "range" : "order statistics");
    if (n < 6) {
      EXPECT_EQ(r, 1u);
      EXPECT_LT(interval->level, 0.95);
    } else {
      EXPECT_GE(interval->level, 0.95);
      EXPECT_LT(coverage_by_enumeration(n, r + 1), 0.95) << "a narrower one would do";
    }
  }
}

TEST(MedianInterval, SmallNumbersOfRuns) {
  EXPECT_FALSE(median_interval({}));
  EXPECT_FALSE(median_interval({5}));
  EXPECT_EQ(median_interval({2, 1})->level, 0.5);
  EXPECT_EQ(median_interval({3, 1, 2})->level, 0.75);
  EXPECT_EQ(median_interval({5, 4, 3, 2, 1})->level, 0.9375);
  EXPECT_EQ(median_interval({6, 5, 4, 3, 2, 1})->level, 0.96875);
  // 99 % is out of reach of 6 runs: the range, and never more than it is worth.
  const auto short_of = median_interval({6, 5, 4, 3, 2, 1}, 0.99);
  EXPECT_EQ(short_of->level, 0.96875);
  EXPECT_EQ(short_of->method, "range");
}

TEST(MedianInterval, CoversAsOftenAsItSays) {
  SplitMix64 random(11);
  for (const size_t n : {3u, 5u, 6u, 10u, 25u}) {
    constexpr int kTrials = 20'000;
    int covered = 0;
    double level = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(n);
      for (double& value : values) value = std::pow(uniform(random), 3);  // skewed; median 1/8
      const auto interval = median_interval(values);
      level = interval->level;
      covered += interval->lo <= 0.125 && 0.125 <= interval->hi;
    }
    EXPECT_NEAR(static_cast<double>(covered) / kTrials, level, 4 * std::sqrt(level * (1 - level) / kTrials))
        << n;
  }
}

// P(|T| <= t) by Simpson's rule on the density.
double t_mass(double t, int degrees) {
  const double scale =
      std::exp(std::lgamma((degrees + 1) / 2.0) - std::lgamma(degrees / 2.0)) / std::sqrt(degrees * M_PI);
  const auto density = [&](double x) { return scale * std::pow(1 + x * x / degrees, -(degrees + 1) / 2.0); };
  constexpr int kSteps = 20'000;
  const double width = t / kSteps;
  double sum = density(0) + density(t);
  for (int i = 1; i < kSteps; ++i) sum += density(i * width) * (i % 2 ? 4 : 2);
  return 2 * sum * width / 3;
}

TEST(PairedRatio, IntervalHoldsTheMassOfT) {
  SplitMix64 random(12);
  for (const size_t n : {2u, 3u, 5u, 8u, 20u}) {
    std::vector<double> base, candidate, logs;
    for (size_t i = 0; i < n; ++i) {
      base.push_back(100 + 10 * uniform(random));
      candidate.push_back(base.back() * (1.5 + 0.1 * uniform(random)));
      logs.push_back(std::log(candidate.back() / base.back()));
    }
    double mean = 0, squares = 0;
    for (const double log : logs) mean += log / static_cast<double>(n);
    for (const double log : logs) squares += (log - mean) * (log - mean);
    const double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
    const auto ratio = paired_ratio(candidate, base);
    ASSERT_TRUE(ratio && ratio->interval);
    EXPECT_NEAR(ratio->value, std::exp(mean), 1e-12);
    EXPECT_NEAR(std::log(ratio->interval->hi) - mean, mean - std::log(ratio->interval->lo), 1e-12);
    EXPECT_NEAR(t_mass((std::log(ratio->interval->hi) - mean) / error, static_cast<int>(n) - 1), 0.95, 1e-6)
        << n;
    EXPECT_EQ(ratio->interval->level, 0.95);
    EXPECT_EQ(ratio->interval->method, "t on paired log-ratios (normality assumed)");
  }
}

TEST(PairedRatio, CoversAsOftenAsItSays) {
  SplitMix64 random(13);
  constexpr int kTrials = 10'000;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> base, candidate;
    for (int i = 0; i < 5; ++i) {
      base.push_back(std::exp(0.3 * normal(random)));  // a block's own level cancels
      candidate.push_back(base.back() * 2 * std::exp(0.05 * normal(random)));
    }
    const auto ratio = paired_ratio(candidate, base);
    covered += ratio->interval->lo <= 2 && 2 <= ratio->interval->hi;
  }
  EXPECT_NEAR(static_cast<double>(covered) / kTrials, 0.95, 0.01);
}

TEST(PairedRatio, NeedsPositivePairs) {
  const std::vector<double> two = {1, 2}, three = {1, 2, 3}, zero = {0, 1}, negative = {-1, 1},
                            not_a_number = {NAN, 1};
  EXPECT_FALSE(paired_ratio({}, {}));
  EXPECT_FALSE(paired_ratio(two, three));
  EXPECT_FALSE(paired_ratio(two, zero));
  EXPECT_FALSE(paired_ratio(zero, two));
  EXPECT_FALSE(paired_ratio(negative, two));
  EXPECT_FALSE(paired_ratio(not_a_number, two));
  const std::vector<double> one = {3}, base = {2};
  const auto ratio = paired_ratio(one, base);
  EXPECT_DOUBLE_EQ(ratio->value, 1.5);
  EXPECT_FALSE(ratio->interval);
}

TEST(CoefficientOfVariation, ByHand) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};  // mean 5, squares 32, n - 1 = 7
  EXPECT_DOUBLE_EQ(*coefficient_of_variation(values), std::sqrt(32.0 / 7) / 5);
  EXPECT_FALSE(coefficient_of_variation(std::vector<double>{3}));
  EXPECT_FALSE(coefficient_of_variation(std::vector<double>{-1, 1}));
  EXPECT_EQ(coefficient_of_variation(std::vector<double>{3, 3}), 0);
}

TEST(MadOutliers, FarRunsAndNothingElse) {
  // median 10, MAD 1: flagged beyond 3.5 * 1.4826 = 5.19
  const std::vector<double> values = {9, 10, 11, 15.1, 4.9, 10, 15.3, 9, 4.7};
  EXPECT_EQ(mad_outliers(values), (std::vector<size_t>{6, 8}));
  EXPECT_EQ(mad_outliers(values, 100), std::vector<size_t>{});
  EXPECT_EQ(mad_outliers({}), std::vector<size_t>{});
  EXPECT_EQ(mad_outliers(std::vector<double>{5}), std::vector<size_t>{});
  // More than half alike: MAD 0, whatever differs is far.
  EXPECT_EQ(mad_outliers(std::vector<double>{5, 5, 5, 6}), std::vector<size_t>{3});
}

TEST(SamplesNeeded, SmallestNumberByMultiplication) {
  EXPECT_EQ(samples_needed(0.99), 299u);
  EXPECT_EQ(samples_needed(0.999), 2995u);
  EXPECT_EQ(samples_needed(0.9999), 29956u);
  EXPECT_EQ(samples_needed(0.95), 59u);
  for (const double q : {0.01, 0.05, 0.3, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999}) {
    uint64_t n = 0;
    long double missed = 1;  // probability that n samples all lie below the quantile
    do missed *= q, ++n;
    while (missed > 0.05);
    EXPECT_EQ(samples_needed(q), n) << q;
  }
  EXPECT_EQ(samples_needed(0), 1u);
  EXPECT_EQ(samples_needed(1), UINT64_MAX) << "never enough for the end of the distribution";
}

}  // namespace
}  // namespace fsbl
