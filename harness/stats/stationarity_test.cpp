// Mann-Kendall and Theil-Sen against all permutations, known data and simulation.
#include "harness/stats/stationarity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/stats/test_random.h"

namespace fsbl {
namespace {

double score(const std::vector<double>& values) {
  double s = 0;
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < i; ++j) s += values[i] > values[j] ? 1 : values[i] < values[j] ? -1 : 0;
  return s;
}

double p_of(double s, double variance) {
  return s == 0 ? 1 : std::erfc((std::abs(s) - 1) / std::sqrt(2 * variance));
}

// The distinct orders of a multiset are equally likely under the null: their variance of S is the formula's.
TEST(Stationarity, VarianceWithTiesIsThatOfAllOrders) {
  for (const std::vector<double>& sorted :
       {std::vector<double>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3}, std::vector<double>{1, 1, 1, 1, 1, 1, 1, 2, 3, 4},
        std::vector<double>{5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7}}) {
    std::vector<double> order = sorted;
    double squares = 0, count = 0;
    do {
      const double s = score(order);
      squares += s * s;
      ++count;
    } while (std::next_permutation(order.begin(), order.end()));
    const double largest = score(sorted);
    EXPECT_NEAR(*stationarity(sorted)->p, p_of(largest, squares / count), 1e-12);
  }
}

TEST(Stationarity, RandomSeriesByDefinition) {
  SplitMix64 random(81);
  for (int trial = 0; trial < 2'000; ++trial) {
    std::vector<double> values = normal_draws(random, kFewestPoints + random.below(25), 100, 5);
    if (trial % 2)
      for (double& value : values) value = 5 * std::round(value / 5);
    const auto n = static_cast<double>(values.size());
    std::vector<double> slopes;
    double tied = 0;
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        slopes.push_back((values[i] - values[j]) / static_cast<double>(i - j));
        tied += values[i] == values[j];
      }
    std::sort(slopes.begin(), slopes.end());
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto middle = [](const std::vector<double>& v) {
      return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
    };
    const auto trend = stationarity(values);
    ASSERT_TRUE(trend && trend->tau);
    const double pairs = n * (n - 1) / 2;
    EXPECT_NEAR(*trend->tau, score(values) / std::sqrt(pairs * (pairs - tied)), 1e-12);
    EXPECT_NEAR(*trend->slope, middle(slopes), 1e-12);
    EXPECT_NEAR(*trend->drift_percent, 100 * middle(slopes) * (n - 1) / middle(sorted), 1e-9);
    if (trial % 2 == 0) {
      EXPECT_NEAR(*trend->p, p_of(score(values), n * (n - 1) * (2 * n + 5) / 18), 1e-12);
    }
    EXPECT_EQ(trend->verdict == Stationarity::drifting,
              *trend->p < 0.05 && std::abs(*trend->drift_percent) > 1);
    std::reverse(values.begin(), values.end());
    EXPECT_EQ(stationarity(values)->tau, -*trend->tau) << "time reversed";
    EXPECT_EQ(stationarity(values)->p, trend->p);
  }
}

TEST(Stationarity, NoTrendIsCalledOneInAtMostAlpha) {
  SplitMix64 random(82);
  constexpr int kTrials = 4'000;
  int significant = 0;
  for (int trial = 0; trial < kTrials; ++trial)
    significant += stationarity(normal_draws(random, 30, 100, 1), {.tolerated_percent = 0})->verdict ==
                   Stationarity::drifting;
  EXPECT_NEAR(static_cast<double>(significant) / kTrials, 0.05, 0.015);
}

TEST(Stationarity, DriftAndWarmUpAreFound) {
  SplitMix64 random(83);
  int drifts = 0, warm_ups = 0, small = 0, falls = 0;
  constexpr int kTrials = 200;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> drift = normal_draws(random, 60, 100, 1), warm_up = drift, slight = drift,
                        fall = drift;
    for (size_t i = 0; i < drift.size(); ++i) {
      const double part = static_cast<double>(i) / 59;
      drift[i] += 5 * part;
      fall[i] -= 5 * part;
      warm_up[i] -= 10 * std::exp(-part / 0.3);  // time constant: three tenths of the window
      slight[i] = 100 + 0.05 * (slight[i] - 100) + 0.3 * part;
    }
    drifts += stationarity(drift)->verdict == Stationarity::drifting;
    falls += stationarity(fall)->verdict == Stationarity::drifting && *stationarity(fall)->drift_percent < -1;
    warm_ups += stationarity(warm_up)->verdict == Stationarity::drifting;
    const auto sure = stationarity(slight);
    small += *sure->p < 0.05 && sure->verdict == Stationarity::stationary;
  }
  EXPECT_GT(drifts, kTrials * 0.98);
  EXPECT_GT(falls, kTrials * 0.98);
  EXPECT_GT(warm_ups, kTrials * 0.98);
  EXPECT_EQ(small, kTrials) << "0.3 % is significant here, and doesn't matter";
}

// The limits that the header states.
TEST(Stationarity, AShortWarmUpIsMostlyMissed) {
  constexpr int kTrials = 300;
  const struct { double noise, tenth, fifth; } rows[] = {{0.3, 0.00, 0.91}, {1, 0.52, 0.98}, {3, 0.30, 0.82}};
  for (const auto& row : rows)
    for (const size_t length : {6u, 12u}) {
      SplitMix64 random(84);
      double found = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> values = normal_draws(random, 60, 100, row.noise);
        for (size_t i = 0; i < length; ++i)
          values[i] -= 10 * static_cast<double>(length - i) / static_cast<double>(length);
        found += (stationarity(values)->verdict == Stationarity::drifting) / static_cast<double>(kTrials);
      }
      EXPECT_NEAR(found, length == 6 ? row.tenth : row.fifth, 0.12) << row.noise << " " << length;
    }
}

TEST(Stationarity, Edges) {
  const auto few = stationarity(std::vector<double>(kFewestPoints - 1, 1));
  EXPECT_EQ(few->verdict, Stationarity::too_few_points);
  EXPECT_EQ(few->points, kFewestPoints - 1);
  EXPECT_FALSE(few->tau || few->p || few->slope || few->drift_percent);
  EXPECT_EQ(stationarity({})->verdict, Stationarity::too_few_points);

  const auto flat = stationarity(std::vector<double>(20, 7));
  EXPECT_EQ(flat->verdict, Stationarity::stationary);
  EXPECT_FALSE(flat->tau);
  EXPECT_EQ(flat->p, 1);
  EXPECT_EQ(flat->drift_percent, 0);

  std::vector<double> rising(11);
  std::iota(rising.begin(), rising.end(), 1);
  EXPECT_EQ(stationarity(rising)->tau, 1);
  EXPECT_EQ(stationarity(rising)->slope, 1);
  EXPECT_DOUBLE_EQ(*stationarity(rising)->drift_percent, 1000.0 / 6);
  std::iota(rising.begin(), rising.end(), -5);
  EXPECT_FALSE(stationarity(rising)->drift_percent) << "of a median of 0";
  EXPECT_EQ(stationarity(rising)->verdict, Stationarity::drifting) << "by p alone";
  std::iota(rising.begin(), rising.end(), -15);
  EXPECT_DOUBLE_EQ(*stationarity(rising)->drift_percent, 100) << "rising, of a negative median";
}

TEST(Stationarity, RefusesBadInput) {
  std::vector<double> values(20, 1);
  EXPECT_FALSE(stationarity(values, {.alpha = 0}));
  EXPECT_FALSE(stationarity(values, {.alpha = NAN}));
  EXPECT_FALSE(stationarity(values, {.tolerated_percent = -1}));
  EXPECT_FALSE(stationarity(values, {.tolerated_percent = NAN}));
  EXPECT_FALSE(stationarity(std::vector<double>(kMostPoints + 1, 1)));
  for (const double bad : {std::nan(""), HUGE_VAL, -1e301}) {
    values[4] = bad;
    EXPECT_FALSE(stationarity(values));
  }
}

TEST(Stationarity, Words) {
  EXPECT_STREQ(to_string(Stationarity::stationary), "stationary");
  EXPECT_STREQ(to_string(Stationarity::drifting), "drifting");
  EXPECT_STREQ(to_string(Stationarity::too_few_points), "too few points");
}

}  // namespace
}  // namespace fsbl
