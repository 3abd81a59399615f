// How many blocks decide, and what a number of blocks can see: power of the one-sided one-sample t-test on
// paired log-ratios that are normal with standard deviation sd. Effects, floors and sd are log-ratios; n
// counts blocks. Pure functions.
//
// nullopt where a precondition fails: sd > 0, n >= 2, 0 < alpha < 0.5, floor >= 0, all finite, no ratio to sd
// overflows; for the two inverses also alpha < power < 1.
#pragma once
#include <cstdint>
#include <optional>

namespace fsbl {

struct TestDesign {
  double alpha = 0.05;  // one-sided level of the test of "mean <= 0"
  double power = 0.80;  // wanted probability of finding the effect
  double floor = 0;     // the estimate must exceed this too; 0 adds nothing, since a significant mean is > 0
};

inline constexpr uint64_t kFewestBlocks = 8;      // METHOD.md, "Verdicts"
inline constexpr uint64_t kMostBlocks = 100'000;  // beyond, "more blocks" is no advice

// P(t-test significant and estimate > floor) when the true mean is `effect` (any sign), by quadrature over
// the chi distribution of the sample sd. Without a floor this is the noncentral t with n - 1 degrees of
// freedom and noncentrality sqrt(n) effect / sd (Johnson, Kotz, Balakrishnan, "Continuous univariate
// distributions" 2, 2nd ed. 1995, chapter 31), to 1e-8; Boost's own noncentral t throws or takes long where
// the noncentrality is large.
std::optional<double> detection_power(double effect, double sd, uint64_t n, const TestDesign& design = {});

// Minimum detectable effect: the smallest true mean found with design.power (to 1e-9, from above).
std::optional<double> minimum_detectable_effect(double sd, uint64_t n, const TestDesign& design = {});

// Smallest n in [kFewestBlocks, kMostBlocks] whose detection_power reaches design.power.
// Also nullopt: effect <= floor (no n would do), or more than kMostBlocks are needed.
std::optional<uint64_t> planned_blocks(double effect, double sd, const TestDesign& design = {});

}  // namespace fsbl
