// The sign-flip test against recursion over all sign vectors.
#include "harness/stats/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "harness/stats/paired_t.h"
#include "harness/stats/test_random.h"

namespace fsbl {
namespace {

uint64_t reached(std::span<const double> rest, double sum, double observed) {
  if (rest.empty()) return sum >= observed;
  return reached(rest.subspan(1), sum + rest[0], observed) +
         reached(rest.subspan(1), sum - rest[0], observed);
}

double brute_force(std::vector<double> values, double null_mean) {
  double observed = 0, absolute = 0;
  for (double& value : values) value -= null_mean, observed += value, absolute += std::abs(value);
  return std::ldexp(static_cast<double>(reached(values, 0, observed - 1e-12 * absolute)),
                    -static_cast<int>(values.size()));
}

TEST(SignFlip, AllSignVectorsByRecursion) {
  SplitMix64 random(31);
  for (int trial = 0; trial < 3'000; ++trial) {
    const size_t n = 1 + random.below(11);
    std::vector<double> values = normal_draws(random, n, 0.3, 1);
    if (trial % 3 == 0)  // ties and zeros
      for (double& value : values) value = std::round(2 * value) / 10;
    const double null_mean = trial % 2 ? 0 : 0.1 * static_cast<double>(random.below(5));
    const auto flip = sign_flip_test(values, {.null_mean = null_mean});
    ASSERT_TRUE(flip);
    EXPECT_DOUBLE_EQ(flip->p, brute_force(values, null_mean)) << n;
    EXPECT_EQ(flip->method, "exact");
  }
}

TEST(SignFlip, AllOfTwoToTheTwenty) {
  SplitMix64 random(32);
  const std::vector<double> values = normal_draws(random, 20, 0.3, 1);
  const auto flip = sign_flip_test(values);
  EXPECT_DOUBLE_EQ(flip->p, brute_force(values, 0));
  EXPECT_EQ(flip->method, "exact");
}

TEST(SignFlip, TheIdentityCounts) {
  for (const size_t n : {1u, 2u, 8u, 20u}) {
    const std::vector<double> slower(n, 0.05), faster(n, -0.05), same(n, 0);
    EXPECT_EQ(sign_flip_test(slower)->p, std::ldexp(1.0, -static_cast<int>(n))) << "only the identity";
    EXPECT_EQ(sign_flip_test(faster)->p, 1);
    EXPECT_EQ(sign_flip_test(same)->p, 1);
  }
  const std::vector<double> slower(40, 0.05);
  EXPECT_EQ(sign_flip_test(slower, {.resamples = 999})->p, 0.001) << "(0 + 1) / (999 + 1)";
  EXPECT_EQ(sign_flip_test(std::vector<double>(40, 0.0), {.resamples = 999})->p, 1);
}

TEST(SignFlip, TiesBeyondRounding) {
  // 0.1 + 0.2 - 0.3 comes to 5.6e-17 and is 0: with it 5 of the 8 subsets have a sum <= 0.
  EXPECT_EQ(sign_flip_test(std::vector<double>{0.1, 0.2, -0.3})->p, 5.0 / 8);
}

TEST(SignFlip, ShiftedNullIsTheShiftedSample) {
  SplitMix64 random(33);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<double> values = normal_draws(random, 10, 0.5, 1);
    const double shifted = sign_flip_test(values, {.null_mean = 0.25})->p;
    EXPECT_GE(shifted, sign_flip_test(values)->p) << "a higher null is harder to exceed";
    for (double& value : values) value -= 0.25;
    EXPECT_EQ(shifted, sign_flip_test(values)->p);
  }
}

TEST(SignFlip, MonteCarloNearsTheExact) {
  SplitMix64 random(34);
  for (int trial = 0; trial < 4; ++trial) {
    // Zeros change no sum: the exact p of the first 15 is that of all 75, past one word of random bits.
    std::vector<double> values = normal_draws(random, 15, 0.4, 1);
    const double exact = sign_flip_test(values)->p;
    values.insert(values.begin(), 60, 0.0);
    const SignFlipOptions options{.seed = 7u + static_cast<uint64_t>(trial), .resamples = 20'000};
    const auto flip = sign_flip_test(values, options);
    EXPECT_NEAR(flip->p, exact, 5 * std::sqrt(exact * (1 - exact) / 20'000) + 1e-4);
    EXPECT_EQ(flip->method, "Monte Carlo, m=20000");
    EXPECT_EQ(flip->p, sign_flip_test(values, options)->p) << "same seed, same p";
  }
}

TEST(SignFlip, RejectsAsOftenAsItSays) {  // skewless but far from normal: uniform
  SplitMix64 random(35);
  constexpr int kTrials = 20'000;
  int found = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(10);
    for (double& value : values) value = uniform_draw(random) - 0.5;
    found += sign_flip_test(values)->p <= 51.0 / 1024;
  }
  // Without ties every multiple of 1/1024 is equally likely.
  EXPECT_NEAR(static_cast<double>(found) / kTrials, 51.0 / 1024, 4 * std::sqrt(0.05 * 0.95 / kTrials));
}

TEST(SignFlip, AgreesWithTOnNormalData) {
  SplitMix64 random(36);
  double apart = 0;
  for (int trial = 0; trial < 1'000; ++trial) {
    const std::vector<double> values = normal_draws(random, 16, 0.3, 1);
    apart += std::abs(sign_flip_test(values)->p - p_above(*paired_t(values), 0)) / 1'000;
  }
  EXPECT_LT(apart, 0.01);
}

TEST(SignFlip, RefusesBadInput) {
  EXPECT_EQ(sign_flip_test({}).error().message(), "sign-flip test: no differences");
  EXPECT_FALSE(sign_flip_test(std::vector<double>{1, NAN}));
  EXPECT_FALSE(sign_flip_test(std::vector<double>{1, INFINITY}));
  EXPECT_FALSE(sign_flip_test(std::vector<double>{1, 2}, {.null_mean = NAN}));
  EXPECT_FALSE(sign_flip_test(std::vector<double>{1, 2}, {.resamples = 0}));
  EXPECT_EQ(sign_flip_test(std::vector<double>(5, 1e308))->p, 1.0 / 32) << "no sum overflows";
}

}  // namespace
}  // namespace fsbl
