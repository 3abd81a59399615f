// Student t against numerical integration of its density and tabulated values.
#include "harness/stats/paired_t.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/stats/test_random.h"

namespace fsbl {
namespace {

// P(T > t) by Simpson's rule on the density, t any sign.
double tail(double t, int degrees) {
  const double scale =
      std::exp(std::lgamma((degrees + 1) / 2.0) - std::lgamma(degrees / 2.0)) / std::sqrt(degrees * M_PI);
  const auto density = [&](double x) { return scale * std::pow(1 + x * x / degrees, -(degrees + 1) / 2.0); };
  constexpr int kSteps = 2'000;
  const double width = t / kSteps;
  double sum = density(0) + density(t);
  for (int i = 1; i < kSteps; ++i) sum += density(i * width) * (i % 2 ? 4 : 2);
  return 0.5 - sum * width / 3;
}

TEST(PairedT, MomentsByHand) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};  // mean 5, squares 32, n - 1 = 7
  const auto sample = paired_t(values);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->n, 8u);
  EXPECT_DOUBLE_EQ(sample->mean, 5);
  EXPECT_DOUBLE_EQ(sample->sd, std::sqrt(32.0 / 7));
}

TEST(PairedT, TabulatedQuantiles) {  // upper 5 % and 1 % points, Fisher and Yates
  const struct {
    size_t n;
    double t5, t1;
  } rows[] = {
      {2, 6.314, 31.821}, {6, 2.015, 3.365}, {8, 1.895, 2.998}, {10, 1.833, 2.821}, {31, 1.697, 2.457}};
  for (const auto& row : rows) {
    const PairedT unit{row.n, 0, std::sqrt(static_cast<double>(row.n))};  // standard error 1
    EXPECT_NEAR(upper_bound(unit, 0.95), row.t5, 5e-4);
    EXPECT_NEAR(lower_bound(unit, 0.95), -row.t5, 5e-4);
    EXPECT_NEAR(upper_bound(unit, 0.99), row.t1, 5e-4);
    EXPECT_NEAR(p_above(unit, -row.t5), 0.05, 5e-5);
    EXPECT_NEAR(p_below(unit, row.t1), 0.01, 5e-5);
  }
}

TEST(PairedT, TailsAreIntegrals) {
  SplitMix64 random(21);
  for (int trial = 0; trial < 2'000; ++trial) {
    const size_t n = 2 + random.below(30);
    const auto sample = paired_t(normal_draws(random, n, 0.3 * normal_draw(random), 1));
    ASSERT_TRUE(sample);
    const double null_mean = 0.2 * normal_draw(random);
    const double t = (sample->mean - null_mean) / (sample->sd / std::sqrt(static_cast<double>(n)));
    if (std::abs(t) < 8) {
      EXPECT_NEAR(p_above(*sample, null_mean), tail(t, static_cast<int>(n) - 1), 1e-7) << t << " " << n;
    }
    EXPECT_NEAR(p_above(*sample, null_mean) + p_below(*sample, null_mean), 1, 1e-12);
    EXPECT_EQ(upper_bound(*sample, 0.95) < null_mean, p_below(*sample, null_mean) < 0.05);
    EXPECT_EQ(lower_bound(*sample, 0.95) > null_mean, p_above(*sample, null_mean) < 0.05);
  }
}

TEST(PairedT, FarTailsKeepTheirDigits) {
  const PairedT far{11, 100, std::sqrt(11.0)};  // t = 100, 10 degrees: the tail is about t^-10
  EXPECT_GT(p_above(far, 0), 0);
  EXPECT_LT(p_above(far, 0), 1e-15);
}

TEST(PairedT, NoneWithoutVariance) {
  EXPECT_FALSE(paired_t({}));
  EXPECT_FALSE(paired_t(std::vector<double>{1}));
  EXPECT_FALSE(paired_t(std::vector<double>(10, 0.1))) << "the mean of ten 0.1 is not 0.1 by summing";
  EXPECT_FALSE(paired_t(std::vector<double>{1, NAN}));
  EXPECT_FALSE(paired_t(std::vector<double>{NAN, 1}));
  EXPECT_FALSE(paired_t(std::vector<double>{1, INFINITY}));
  EXPECT_FALSE(paired_t(std::vector<double>{-1e308, 1e308}));
}

}  // namespace
}  // namespace fsbl
