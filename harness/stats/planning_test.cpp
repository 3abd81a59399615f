// Power against Boost's noncentral t, published tables and simulation; its inverses against scans and each
// other.
#include "harness/stats/planning.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "harness/stats/paired_t.h"
#include "harness/stats/test_random.h"

namespace fsbl {
namespace {

double noncentral_t_power(double shift, uint64_t n, double alpha) {
  const double degrees = static_cast<double>(n - 1);
  const double critical = quantile(complement(boost::math::students_t(degrees), alpha));
  return cdf(complement(boost::math::non_central_t(degrees, shift), critical));
}

TEST(DetectionPower, IsTheNoncentralT) {
  for (const uint64_t n : {2u, 3u, 5u, 8u, 10u, 30u, 1'000u, 100'000u})
    for (const double alpha : {0.05, 0.0125, 0.001})
      for (double shift = -2; shift <= 12; shift += 0.75) {
        const double effect = 0.02 * shift / std::sqrt(static_cast<double>(n));
        const auto power = detection_power(effect, 0.02, n, {.alpha = alpha});
        ASSERT_TRUE(power);
        EXPECT_NEAR(*power, noncentral_t_power(shift, n, alpha), 1e-8) << n << " " << alpha << " " << shift;
      }
}

TEST(DetectionPower, Limits) {
  for (const double floor : {0.0, 0.025}) {
    const TestDesign design{.floor = floor};
    EXPECT_NEAR(*detection_power(1e6, 0.02, 8, design), 1, 1e-12);
    EXPECT_NEAR(*detection_power(-1e6, 0.02, 8, design), 0, 1e-12);
    EXPECT_NEAR(*detection_power(1, 1e-17, 8, design), 1, 1e-12);
  }
  EXPECT_NEAR(*detection_power(0, 0.02, 10), 0.05, 1e-9) << "no effect: alpha";
  EXPECT_NEAR(*detection_power(0.025, 1e-4, 10, {.floor = 0.025}), 0.5, 1e-9) << "an effect at the floor";
}

double simulated_power(double effect, double sd, size_t n, const TestDesign& design, int trials) {
  SplitMix64 random(51 + n);
  const double critical =
      quantile(complement(boost::math::students_t(static_cast<double>(n - 1)), design.alpha));
  int found = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const PairedT sample = *paired_t(normal_draws(random, n, effect, sd));
    const double t = sample.mean / (sample.sd / std::sqrt(static_cast<double>(n)));
    found += t > critical && sample.mean > design.floor;
  }
  return static_cast<double>(found) / trials;
}

TEST(DetectionPower, IsWhatSimulationFinds) {
  constexpr int kTrials = 20'000;
  const struct {
    double effect, sd;
    size_t n;
    TestDesign design;
  } rows[] = {
      {0.02, 0.02, 8, {}},
      {0.03, 0.02, 10, {.alpha = 0.0125, .floor = 0.0247}},
      {0.05, 0.06, 10, {.alpha = 0.0125, .floor = 0.0247}},  // floor and significance bind alike
      {0.03, 0.03, 12, {.alpha = 0.05, .floor = 0.0247}},
      {0.05, 0.05, 4, {.alpha = 0.05, .floor = 0.04}},
  };
  for (const auto& row : rows) {
    const double power = *detection_power(row.effect, row.sd, row.n, row.design);
    EXPECT_NEAR(simulated_power(row.effect, row.sd, row.n, row.design, kTrials), power,
                4 * std::sqrt(power * (1 - power) / kTrials))
        << row.n;
  }
}

TEST(MinimumDetectableEffect, HasThePowerAskedFor) {
  SplitMix64 random(52);
  for (int trial = 0; trial < 1'000; ++trial) {
    const double sd = 0.001 + 0.1 * uniform_draw(random);
    const uint64_t n = 2 + random.below(40);
    const TestDesign design{0.002 + 0.1 * uniform_draw(random), 0.6 + 0.39 * uniform_draw(random),
                            trial % 2 ? 0.0 : 0.05 * uniform_draw(random)};
    const auto effect = minimum_detectable_effect(sd, n, design);
    ASSERT_TRUE(effect);
    EXPECT_NEAR(*detection_power(*effect, sd, n, design), design.power, 1e-6);
    EXPECT_GE(*detection_power(*effect * 1.000001, sd, n, design), design.power);
    EXPECT_GT(*effect, design.floor) << "power above one half";
  }
}

TEST(PlannedBlocks, SmallestByScan) {
  SplitMix64 random(53);
  for (int trial = 0; trial < 200; ++trial) {
    const double sd = 0.01 + 0.05 * uniform_draw(random);
    const TestDesign design{0.0125 + 0.04 * uniform_draw(random), 0.8, trial % 2 ? 0.0 : 0.02};
    const double effect = design.floor + sd * (0.3 + uniform_draw(random));
    uint64_t smallest = kFewestBlocks;
    while (*detection_power(effect, sd, smallest, design) < design.power) ++smallest;
    EXPECT_EQ(planned_blocks(effect, sd, design), smallest);
  }
}

TEST(PlannedBlocks, InvertsTheMinimumDetectableEffect) {
  for (const double floor : {0.0, 0.0247})
    for (const uint64_t n : {8u, 9u, 10u, 17u, 100u, 999u, 50'000u}) {
      const TestDesign design{.alpha = 0.0125, .floor = floor};
      const double effect = *minimum_detectable_effect(0.02, n, design);
      // A hair either side of it: n just suffices, and just doesn't.
      EXPECT_EQ(planned_blocks(floor + (effect - floor) * 1.00001, 0.02, design), n) << floor;
      if (n > kFewestBlocks && n < 10'000) {
        EXPECT_EQ(planned_blocks(floor + (effect - floor) * 0.99999, 0.02, design), n + 1) << floor;
      }
    }
}

TEST(PlannedBlocks, TextbookSizes) {
  // One-sided one-sample t, alpha 0.05, power 0.80: effect sizes 0.5 and 0.8 need 27 and 12 (Cohen 1988;
  // G*Power 3).
  EXPECT_EQ(planned_blocks(0.5, 1), 27u);
  EXPECT_EQ(planned_blocks(0.8, 1), 12u);
  EXPECT_EQ(planned_blocks(100, 1), kFewestBlocks);
}

TEST(PlannedBlocks, OutOfReach) {
  EXPECT_FALSE(planned_blocks(0, 0.02));
  EXPECT_FALSE(planned_blocks(-0.01, 0.02));
  EXPECT_FALSE(planned_blocks(0.02, 0.02, {.floor = 0.025})) << "more blocks only make it surer";
  EXPECT_FALSE(planned_blocks(0.025, 0.02, {.floor = 0.025}));
  EXPECT_FALSE(planned_blocks(1e-6, 0.02)) << "more than kMostBlocks";
  const double edge = *minimum_detectable_effect(0.02, kMostBlocks);
  EXPECT_TRUE(planned_blocks(edge * 1.00001, 0.02));
  EXPECT_FALSE(planned_blocks(edge * 0.9999, 0.02));
}

TEST(Planning, RefusesBadInput) {
  for (const double bad_sd : std::vector<double>{0, -1, NAN, INFINITY}) {
    EXPECT_FALSE(detection_power(0.1, bad_sd, 10));
    EXPECT_FALSE(minimum_detectable_effect(bad_sd, 10));
    EXPECT_FALSE(planned_blocks(0.1, bad_sd));
  }
  for (const TestDesign& bad : {TestDesign{.alpha = 0}, TestDesign{.alpha = 0.5}, TestDesign{.alpha = NAN},
                                TestDesign{.floor = -1}, TestDesign{.floor = NAN}}) {
    EXPECT_FALSE(detection_power(0.1, 0.02, 10, bad));
    EXPECT_FALSE(minimum_detectable_effect(0.02, 10, bad));
    EXPECT_FALSE(planned_blocks(0.1, 0.02, bad));
  }
  for (const double bad : std::vector<double>{0.05, 1, NAN}) {
    EXPECT_FALSE(minimum_detectable_effect(0.02, 10, {.power = bad}));
    EXPECT_FALSE(planned_blocks(0.1, 0.02, {.power = bad}));
  }
  EXPECT_FALSE(detection_power(NAN, 0.02, 10));
  EXPECT_FALSE(detection_power(0.1, 0.02, 1));
  EXPECT_FALSE(detection_power(1e300, 1e-300, 8));
}

}  // namespace
}  // namespace fsbl
