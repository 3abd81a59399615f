// The rule of METHOD.md, "Verdicts", on each kind of input; verdict_calibration_test.cpp has the error rates.
#include "harness/stats/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/stats/multiple.h"
#include "harness/stats/paired_t.h"
#include "harness/stats/planning.h"
#include "harness/stats/test_random.h"

namespace fsbl {
namespace {

using Series = std::vector<double>;

// n values about the mean, alternately above and below; n even.
Series zigzag(size_t n, double mean, double distance) {
  Series values(n);
  for (size_t i = 0; i < n; ++i) values[i] = mean + (i % 2 ? distance : -distance);
  return values;
}

RunVerdict judged(const std::vector<Series>& series, const GatePolicy& policy = {}) {
  std::vector<GatedCell> cells;
  for (const Series& values : series)
    cells.push_back({std::string(1, static_cast<char>('a' + cells.size())), values});
  auto run = judge(cells, policy);
  EXPECT_TRUE(run) << run.error().message();
  return run ? *run : RunVerdict{};
}

TEST(Verdict, Pass) {
  const RunVerdict run = judged({zigzag(10, 0.001, 0.002), zigzag(10, -0.01, 0.01)});
  EXPECT_EQ(run.verdict, GateVerdict::pass);
  EXPECT_EQ(run.reason, "every gated cell passes (2)");
  EXPECT_EQ(run.cells[0].reason, "upper 95 % bound +0.22 % is below the tolerated +2.50 %");
  EXPECT_FALSE(run.blocks_to_decide);
  EXPECT_LT(*run.pass_p, 0.05);
}

TEST(Verdict, ASlowdownWithinTheToleranceIsAPassHoweverSure) {
  const RunVerdict run = judged({zigzag(10, 0.01, 0.0001)});
  EXPECT_LT(*run.cells[0].holm_p, 1e-9);
  EXPECT_EQ(run.verdict, GateVerdict::pass);
}

TEST(Verdict, Regression) {
  const RunVerdict run = judged({zigzag(10, 0.05, 0.02), zigzag(10, 0, 0.02), zigzag(10, 0, 0.1)});
  EXPECT_EQ(run.verdict, GateVerdict::regression) << "whatever the other cells are";
  EXPECT_EQ(run.reason, "regression in a");
  EXPECT_EQ(run.cells[0].reason,
            "slower beyond the tolerated +2.50 %: estimate +5.13 %, Holm-corrected p = 5.5e-05");
  EXPECT_EQ(run.cells[1].verdict, GateVerdict::pass);
  EXPECT_EQ(run.cells[2].verdict, GateVerdict::inconclusive);
  EXPECT_TRUE(run.cells[0].notes.empty());
}

TEST(Verdict, Inconclusive) {
  const RunVerdict run = judged({zigzag(10, 0.01, 0.05), zigzag(10, 0.03, 0.08), zigzag(10, 0.024, 0.01)});
  EXPECT_EQ(run.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(run.reason, "undecided: a, b, c");
  EXPECT_LT(*run.cells[2].holm_p, 0.05) << "slower for sure, by more than delta or not";
  for (const CellVerdict& cell : run.cells) {
    EXPECT_GT(*cell.blocks_to_decide, cell.blocks);
    EXPECT_NE(cell.reason.find("isn't below the tolerated +2.50 %, and no regression is shown"),
              std::string::npos);
  }
  EXPECT_EQ(run.blocks_to_decide, run.cells[2].blocks_to_decide) << "the largest";
}

TEST(Verdict, TheToleranceIsARatio) {
  const double delta = std::log1p(0.2);  // 0.182, and 0.19 is more
  EXPECT_EQ(judged({zigzag(10, 0.19, 0.001)}, {.tolerated_slowdown = 0.2}).verdict, GateVerdict::regression);
  EXPECT_EQ(judged({zigzag(10, delta - 0.002, 0.001)}, {.tolerated_slowdown = 0.2}).verdict,
            GateVerdict::pass);
  EXPECT_EQ(judged({zigzag(10, 0.01, 0.001)}, {.tolerated_slowdown = 0}).verdict, GateVerdict::regression);
}

// Every figure and every verdict from its definition.
TEST(Verdict, FiguresFollowTheirDefinitions) {
  SplitMix64 random(61);
  int words[3] = {};
  for (int trial = 0; trial < 1'000; ++trial) {
    const size_t n = kFewestBlocks + random.below(6), k = 1 + random.below(4);
    std::vector<Series> series;
    std::vector<double> t_p, flip_p;
    for (size_t i = 0; i < k; ++i) {
      series.push_back(normal_draws(random, n, 0.02 * normal_draw(random), 0.03 * uniform_draw(random)));
      t_p.push_back(p_above(*paired_t(series.back()), 0));
      flip_p.push_back(sign_flip_test(series.back())->p);
    }
    const RunVerdict run = judged(series);
    const auto holm = *holm_adjusted(t_p), flips = *holm_adjusted(flip_p);
    bool any_regression = false, all_pass = true;
    for (size_t i = 0; i < k; ++i) {
      const CellVerdict& cell = run.cells[i];
      const PairedT sample = *paired_t(series[i]);
      EXPECT_EQ(cell.blocks, n);
      EXPECT_EQ(cell.estimate_ratio, std::exp(sample.mean));
      EXPECT_EQ(cell.lower_ratio, std::exp(lower_bound(sample, 0.95)));
      EXPECT_EQ(cell.upper_ratio, std::exp(upper_bound(sample, 0.95)));
      EXPECT_EQ(cell.t_p, t_p[i]);
      EXPECT_EQ(cell.holm_p, holm[i]);
      EXPECT_EQ(cell.sign_flip->p, flip_p[i]);
      EXPECT_EQ(cell.sign_flip->method, "exact");
      EXPECT_EQ(cell.sign_flip_holm_p, flips[i]);
      EXPECT_EQ(cell.pass_p, p_below(sample, std::log1p(0.025)));
      const bool regression = holm[i] < 0.05 && *cell.estimate_ratio > 1.025,
                 pass = *cell.upper_ratio < 1.025;
      EXPECT_FALSE(regression && pass);
      EXPECT_EQ(cell.verdict == GateVerdict::regression, regression);
      EXPECT_EQ(cell.verdict == GateVerdict::pass, pass);
      EXPECT_EQ(cell.notes.size(), (holm[i] < 0.05) != (flips[i] < 0.05) ? 1u : 0u);
      const TestDesign design{0.05 / static_cast<double>(k), 0.8, std::log1p(0.025)};
      EXPECT_NEAR(*detection_power(std::log(*cell.detectable_ratio), sample.sd, n, design), 0.8, 1e-6);
      EXPECT_EQ(cell.blocks_to_decide.has_value() && *cell.blocks_to_decide <= n, false);
      any_regression |= regression;
      all_pass &= pass;
    }
    EXPECT_EQ(run.verdict, any_regression ? GateVerdict::regression
                           : all_pass     ? GateVerdict::pass
                                          : GateVerdict::inconclusive);
    ++words[static_cast<size_t>(run.verdict)];
  }
  for (const int count : words) EXPECT_GT(count, 100) << "each verdict was tried";
}

TEST(Verdict, OrderOfCellsDoesNotMatter) {
  SplitMix64 random(62);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Series> series;
    for (int i = 0; i < 3; ++i) series.push_back(normal_draws(random, 22, 0.02, 0.04));  // Monte Carlo
    const RunVerdict forth = judged(series, {.resamples = 999});
    std::reverse(series.begin(), series.end());
    const RunVerdict back = judged(series, {.resamples = 999});
    EXPECT_EQ(forth.verdict, back.verdict);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(forth.cells[i].holm_p, back.cells[2 - i].holm_p);
      EXPECT_EQ(forth.cells[i].sign_flip_holm_p, back.cells[2 - i].sign_flip_holm_p);
      EXPECT_EQ(forth.cells[i].sign_flip->method, "Monte Carlo, m=999");
    }
  }
}

TEST(Verdict, DisagreementOfTheTestsIsNoted) {
  // All slower, one by far: the outlier's variance hides it from t, not from the signs.
  Series outlier(8, 0.03);
  for (size_t i = 0; i < 7; ++i) outlier[i] += 0.001 * static_cast<double>(i);
  outlier[7] = 1;
  const RunVerdict hidden = judged({outlier});
  EXPECT_EQ(hidden.verdict, GateVerdict::inconclusive);
  ASSERT_EQ(hidden.cells[0].notes.size(), 1u);
  EXPECT_EQ(
      hidden.cells[0].notes[0],
      "t and sign-flip disagree about a slowdown: Holm-corrected p = 0.12 (t), 0.0039 (sign-flip, exact); "
      "the verdict is t's");
  // 13 cells of 8 blocks: even the smallest sign-flip p, 1/256, is 0.051 after correction.
  const RunVerdict coarse = judged(std::vector<Series>(13, zigzag(8, 0.05, 0.005)));
  EXPECT_EQ(coarse.verdict, GateVerdict::regression);
  EXPECT_EQ(coarse.cells[0].notes.size(), 1u);
}

TEST(Verdict, TooFewBlocks) {
  for (const size_t n : {0u, 1u, 2u, 4u, 6u}) {
    const RunVerdict run = judged({zigzag(n, 0.3, 0.001)});
    EXPECT_EQ(run.verdict, GateVerdict::inconclusive);
    EXPECT_EQ(run.reason, "undecided: a");
    EXPECT_EQ(run.cells[0].reason, std::to_string(n) + " blocks, and a verdict needs 8");
    EXPECT_EQ(run.cells[0].estimate_ratio.has_value(), n >= 1);
    EXPECT_EQ(run.cells[0].t_p.has_value(), n >= 2) << "a pilot's figures are shown";
    EXPECT_EQ(run.blocks_to_decide.has_value(), n >= 2) << "a pilot fixes n";
    EXPECT_FALSE(run.cells[0].holm_p || run.cells[0].sign_flip_holm_p || run.pass_p);
    if (n >= 2) {
      EXPECT_EQ(run.blocks_to_decide, kFewestBlocks);
    }
  }
  Series seven = zigzag(8, 0.3, 0.001);
  EXPECT_EQ(judged({seven}).verdict, GateVerdict::regression);
  seven.pop_back();
  EXPECT_EQ(judged({seven}).verdict, GateVerdict::inconclusive);
}

TEST(Verdict, NoLogRatios) {
  for (const double bad : Series{NAN, INFINITY, -INFINITY, 20.5, -1e300}) {
    Series values = zigzag(10, 0, 0.001);
    values[3] = bad;
    const RunVerdict run = judged({values, zigzag(10, 0, 0.001)});
    EXPECT_EQ(run.verdict, GateVerdict::inconclusive) << "a cell that can't pass, whatever the other says";
    EXPECT_EQ(run.cells[0].reason.substr(0, 14), "block 4 holds ");
    EXPECT_FALSE(run.cells[0].estimate_ratio || run.cells[0].t_p || run.cells[0].sign_flip ||
                 run.cells[0].detectable_ratio || run.cells[0].blocks_to_decide || run.pass_p);
    EXPECT_EQ(run.cells[1].verdict, GateVerdict::pass);
    EXPECT_FALSE(run.blocks_to_decide) << "no number of blocks mends it";
  }
  EXPECT_TRUE(std::isfinite(*judged({Series{-20, 20}}).cells[0].upper_ratio));
}

TEST(Verdict, NoVariance) {
  for (const double same : {0.0, 0.1, -0.1}) {
    const RunVerdict run = judged({Series(10, same)});
    EXPECT_EQ(run.verdict, GateVerdict::inconclusive);
    EXPECT_EQ(run.cells[0].reason.find("all 10 blocks hold the same log-ratio"), 0u);
    EXPECT_EQ(run.cells[0].estimate_ratio, std::exp(same));
    EXPECT_FALSE(run.cells[0].upper_ratio || run.cells[0].t_p || run.cells[0].detectable_ratio);
  }
}

TEST(Verdict, AnUndecidableCellCountsInTheCorrection) {
  const Series slow = zigzag(10, 0.05, 0.03);
  const RunVerdict alone = judged({slow}), beside = judged({slow, Series(10, 0), Series(10, 0)});
  EXPECT_DOUBLE_EQ(*beside.cells[0].holm_p, 3 * *alone.cells[0].holm_p);
  EXPECT_EQ(beside.verdict, GateVerdict::regression) << "found all the same";
  // Too few blocks, with a p so small that it would take the correction upon itself.
  const RunVerdict few = judged({slow, zigzag(6, 0.3, 0.0001)});
  EXPECT_DOUBLE_EQ(*few.cells[0].holm_p, 2 * *alone.cells[0].holm_p);
  EXPECT_DOUBLE_EQ(*few.cells[0].sign_flip_holm_p, 2 * *alone.cells[0].sign_flip_holm_p);
}

TEST(Verdict, UnevenCellsDecideNothing) {
  const RunVerdict run = judged({zigzag(10, 0.1, 0.001), zigzag(12, 0, 0.001)});
  EXPECT_EQ(run.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(run.reason, "10 to 12 blocks per cell: not the complete blocks of one run");
  for (const CellVerdict& cell : run.cells) {
    EXPECT_EQ(cell.verdict, GateVerdict::inconclusive);
    EXPECT_EQ(cell.reason, run.reason);
    EXPECT_TRUE(cell.t_p && cell.upper_ratio);
  }
  ASSERT_EQ(run.cells[0].notes.size(), 1u);
  EXPECT_EQ(run.cells[0].notes[0].find("by itself: regression (slower beyond"), 0u);
}

TEST(Verdict, RefusesBadInput) {
  EXPECT_EQ(judge({}).error().message(),
            "gate: no gated cells; name one or more primary cells in the policy");
  const Series values = zigzag(10, 0, 0.001);
  const std::vector<GatedCell> cells = {{"a", values}};
  for (const GatePolicy& bad :
       {GatePolicy{.tolerated_slowdown = -0.01}, GatePolicy{.tolerated_slowdown = NAN},
        GatePolicy{.tolerated_slowdown = INFINITY}, GatePolicy{.alpha = 0}, GatePolicy{.alpha = 0.5},
        GatePolicy{.alpha = NAN}, GatePolicy{.power = 0.05}, GatePolicy{.power = 1}, GatePolicy{.power = NAN},
        GatePolicy{.resamples = 0}}) {
    const auto run = judge(cells, bad);
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().kind, ErrorKind::bad_input);
  }
}

TEST(Verdict, Words) {
  EXPECT_STREQ(to_string(GateVerdict::pass), "pass");
  EXPECT_STREQ(to_string(GateVerdict::regression), "regression");
  EXPECT_STREQ(to_string(GateVerdict::inconclusive), "inconclusive");
}

}  // namespace
}  // namespace fsbl
