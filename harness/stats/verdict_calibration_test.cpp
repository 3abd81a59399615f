// How often verdicts are wrong, by simulation with fixed seeds; limits are 4 standard deviations wide.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/stats/planning.h"
#include "harness/stats/test_random.h"
#include "harness/stats/verdict.h"

namespace fsbl {
namespace {

const double kDelta = std::log1p(0.025);

struct Rates {
  double regression = 0, pass = 0, first_regression = 0;
};

// Verdicts over independent runs whose cell i has log-ratios N(means[i], sd).
Rates simulate(uint64_t seed, int runs, size_t blocks, const std::vector<double>& means, double sd,
               const GatePolicy& policy = {}) {
  SplitMix64 random(seed);
  Rates rates;
  for (int run = 0; run < runs; ++run) {
    std::vector<std::vector<double>> series;
    std::vector<GatedCell> cells;
    for (const double mean : means) series.push_back(normal_draws(random, blocks, mean, sd));
    for (const auto& values : series) cells.push_back({"cell", values});
    const auto verdict = judge(cells, policy);
    if (!verdict) {
      ADD_FAILURE() << verdict.error().message();
      return rates;
    }
    rates.regression += (verdict->verdict == GateVerdict::regression) / static_cast<double>(runs);
    rates.pass += (verdict->verdict == GateVerdict::pass) / static_cast<double>(runs);
    rates.first_regression +=
        (verdict->cells[0].verdict == GateVerdict::regression) / static_cast<double>(runs);
  }
  return rates;
}

double slack(double rate, int runs) {
  return 4 * std::sqrt(rate * (1 - rate) / runs);
}

TEST(VerdictCalibration, AAIsARegressionInAtMostAlphaOfRuns) {
  constexpr int kRuns = 10'000;
  // Without a tolerance only Holm limits it, and four independent cells nearly reach the limit: 1 - (1 -
  // 0.0125)^4.
  const Rates strict = simulate(71, kRuns, 10, {0, 0, 0, 0}, 0.02, {.tolerated_slowdown = 0});
  EXPECT_NEAR(strict.regression, 0.0491, slack(0.05, kRuns));
  // With one, noise of 2 % never reaches it.
  const Rates usual = simulate(72, 1'000, 10, {0, 0, 0, 0}, 0.02);
  EXPECT_LT(usual.regression, 0.005);
  EXPECT_GT(usual.pass, 0.5);
}

TEST(VerdictCalibration, APlantedSlowdownIsFoundWithThePowerStated) {
  constexpr int kRuns = 1'500;
  const TestDesign design{0.05 / 4, 0.8, kDelta};
  for (const double sd : {0.02, 0.04}) {
    const double stated = *detection_power(std::log1p(0.05), sd, 10, design);
    const Rates rates = simulate(73, kRuns, 10, {std::log1p(0.05), 0, 0, 0}, sd);
    EXPECT_GE(rates.first_regression, stated - slack(stated, kRuns)) << sd;
    EXPECT_LE(rates.first_regression, stated + 0.05) << "Holm gains little over Bonferroni here";
    EXPECT_EQ(rates.pass, 0) << sd;
  }
  EXPECT_GT(*detection_power(std::log1p(0.05), 0.02, 10, design), 0.9)
      << "10 blocks suffice for 5 % at 2 % noise";
}

TEST(VerdictCalibration, TheDetectableRatioIsDetected) {
  constexpr int kRuns = 2'000;
  for (const size_t blocks : {8u, 12u}) {
    const double effect = *minimum_detectable_effect(0.03, blocks, {.floor = kDelta});
    EXPECT_NEAR(simulate(74, kRuns, blocks, {effect}, 0.03).regression, 0.8, slack(0.8, kRuns));
  }
}

TEST(VerdictCalibration, ASlowdownOfDeltaPassesInAtMostAlphaOfRuns) {
  constexpr int kRuns = 5'000;
  EXPECT_NEAR(simulate(75, kRuns, 10, {kDelta}, 0.02).pass, 0.05, slack(0.05, kRuns));
  // The worst case of the intersection-union: all other cells pass for sure.
  EXPECT_NEAR(simulate(76, kRuns, 8, {kDelta, -1}, 0.02).pass, 0.05, slack(0.05, kRuns));
  EXPECT_LE(simulate(77, 1'000, 10, {kDelta, kDelta}, 0.02).pass, 0.0025 + slack(0.0025, 1'000));
}

TEST(VerdictCalibration, ThePlannedBlocksDecide) {
  constexpr int kRuns = 2'000;
  // Effects that stand for a cell's estimate: within delta a pass, beyond it a regression.
  const auto pass_blocks = planned_blocks(kDelta - 0.01, 0.03);
  ASSERT_TRUE(pass_blocks);
  EXPECT_GT(*pass_blocks, kFewestBlocks);
  EXPECT_NEAR(simulate(78, kRuns, *pass_blocks, {0.01}, 0.03, {.resamples = 99}).pass,
              *detection_power(kDelta - 0.01, 0.03, *pass_blocks), slack(0.8, kRuns));
  const TestDesign regression{.floor = kDelta};
  const auto regression_blocks = planned_blocks(0.04, 0.06, regression);
  ASSERT_TRUE(regression_blocks);
  EXPECT_GT(*regression_blocks, kFewestBlocks);
  EXPECT_NEAR(simulate(79, kRuns, *regression_blocks, {0.04}, 0.06, {.resamples = 99}).regression,
              *detection_power(0.04, 0.06, *regression_blocks, regression), slack(0.8, kRuns));
}

}  // namespace
}  // namespace fsbl
