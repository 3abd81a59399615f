// Holm against closed testing over all subsets.
#include "harness/stats/multiple.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/stats/test_random.h"

namespace fsbl {
namespace {

// A hypothesis is rejected if Bonferroni rejects every set of hypotheses that holds it (Marcus, Peritz,
// Gabriel 1976).
std::vector<double> closed_testing(const std::vector<double>& p) {
  std::vector<double> adjusted(p.size(), 0);
  for (uint32_t set = 1; set < 1u << p.size(); ++set) {
    double smallest = 1;
    for (size_t i = 0; i < p.size(); ++i)
      if (set >> i & 1) smallest = std::min(smallest, p[i]);
    const double bonferroni = std::min(1.0, std::popcount(set) * smallest);
    for (size_t i = 0; i < p.size(); ++i)
      if (set >> i & 1) adjusted[i] = std::max(adjusted[i], bonferroni);
  }
  return adjusted;
}

TEST(Holm, IsClosedTestingWithBonferroni) {
  SplitMix64 random(41);
  for (int trial = 0; trial < 5'000; ++trial) {
    std::vector<double> p(1 + random.below(7));
    for (double& value : p) value = std::pow(uniform_draw(random), 3);
    if (trial % 4 == 0)  // ties, 0 and 1
      for (double& value : p) value = std::round(4 * value) / 4;
    const auto adjusted = holm_adjusted(p);
    ASSERT_TRUE(adjusted);
    const std::vector<double> expected = closed_testing(p);
    for (size_t i = 0; i < p.size(); ++i)
      EXPECT_DOUBLE_EQ((*adjusted)[i], expected[i]) << i << " of " << p.size();
  }
}

TEST(Holm, ByHand) {
  const auto adjusted = holm_adjusted(std::vector<double>{0.04, 0.01, 0.03, 0.5});
  ASSERT_TRUE(adjusted);
  EXPECT_DOUBLE_EQ((*adjusted)[1], 0.04);
  EXPECT_DOUBLE_EQ((*adjusted)[2], 0.09);
  EXPECT_DOUBLE_EQ((*adjusted)[0], 0.09) << "2 * 0.04 is less than what a smaller p got";
  EXPECT_DOUBLE_EQ((*adjusted)[3], 0.5);
  EXPECT_EQ(holm_adjusted(std::vector<double>{0.7, 0.8})->front(), 1) << "clipped";
  EXPECT_TRUE(holm_adjusted({})->empty());
}

TEST(IntersectionUnion, EveryCellPasses) {
  EXPECT_EQ(intersection_union_p(std::vector<double>{0.01, 0.04, 0.02}), 0.04) << "no correction";
  EXPECT_EQ(intersection_union_p(std::vector<double>{0.01, 0.06}), 0.06);
  SplitMix64 random(42);
  for (int trial = 0; trial < 2'000; ++trial) {
    std::vector<double> p(1 + random.below(6));
    for (double& value : p) value = 0.1 * uniform_draw(random);
    const bool every = std::all_of(p.begin(), p.end(), [](double value) { return value < 0.05; });
    EXPECT_EQ(*intersection_union_p(p) < 0.05, every);
  }
}

TEST(Multiple, RefusesWhatIsNoProbability) {
  for (const double bad : std::vector<double>{NAN, -0.01, 1.01, INFINITY}) {
    const std::vector<double> p = {0.5, bad};
    EXPECT_FALSE(holm_adjusted(p)) << bad;
    EXPECT_FALSE(intersection_union_p(p)) << bad;
    EXPECT_EQ(holm_adjusted(p).error().kind, ErrorKind::bad_input);
  }
  EXPECT_FALSE(intersection_union_p({})) << "nothing passes by default";
}

}  // namespace
}  // namespace fsbl
