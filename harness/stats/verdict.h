// The verdict of a gate over paired blocks of one interleaved run (METHOD.md, "Verdicts"). Pure functions.
//
// s = log(candidate / base) per block, > 0 where the candidate is slower. delta = log1p(tolerated_slowdown).
// With k gated cells, per cell:
// - regression: the t-test's p against the null "mean s <= 0", Holm-corrected over the k cells, is < alpha
//   and the estimate exceeds delta. The null is "no slowdown", not "no more than delta": significance says
//   that there is a slowdown, the estimate that it matters. So an A/A comparison is called a regression in at
//   most alpha of all runs, over all cells together; a true slowdown of up to delta may be called one where
//   its estimate lands above delta (at delta itself half the time). Such a candidate is slower, and wouldn't
//   have passed either.
// - pass: the upper one-sided bound at level 1 - alpha is < delta. For the whole: in every cell, without
//   correction (intersection-union), so a candidate that is slower by delta or more in some cell passes in at
//   most alpha of all runs.
// - otherwise inconclusive.
// The whole: regression if any cell is one; pass if all pass; otherwise inconclusive.
//
// A cell is undecidable, so inconclusive with its reason, if it has fewer than kFewestBlocks, values that are
// no log-ratios of a measurement (not finite, |s| > 20), or equal values in all blocks (t is undefined, and a
// measurement varies). It still counts in k. Cells with different numbers of blocks are no complete blocks of
// one run: everything is inconclusive, with the figures.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/stats/permutation.h"

namespace fsbl {

struct GatedCell {
  std::string name;
  std::span<const double> slowdowns;  // s, one per block; borrowed for the call
};

struct GatePolicy {
  double tolerated_slowdown = 0.025;  // ratio - 1, >= 0
  double alpha = 0.05;                // in (0, 0.5)
  double power = 0.80;                // of detectable_ratio and blocks_to_decide; in (alpha, 1)
  uint64_t seed = 1;                  // of the sign flips' Monte Carlo
  uint64_t resamples = 99'999;        // of it, >= 1
};

enum class GateVerdict { pass, regression, inconclusive };
const char* to_string(GateVerdict verdict);

struct CellVerdict {
  std::string name;
  GateVerdict verdict = GateVerdict::inconclusive;
  std::string reason;
  std::vector<std::string> notes;        // e.g. t and sign-flip disagree
  uint64_t blocks = 0;                   // n
  std::optional<double> estimate_ratio;  // exp(mean s): candidate / base
  std::optional<double> lower_ratio;     // one-sided bounds at level 1 - alpha each (t, normality assumed)
  std::optional<double> upper_ratio;
  std::optional<double> t_p;          // null "mean s <= 0", one-sided, not corrected
  std::optional<double> holm_p;       // the same, Holm-corrected over the k cells; decidable cells only
  std::optional<double> pass_p;       // null "mean s >= delta"; < alpha exactly where upper < delta
  std::optional<SignFlip> sign_flip;  // null "s symmetric about 0", one-sided, not corrected
  std::optional<double> sign_flip_holm_p;
  // Smallest true ratio that this n and spread would call a regression with `power`, at the level alpha / k
  // that suffices whatever the other cells show.
  std::optional<double> detectable_ratio;
  // For a cell that isn't decided: the n with `power` for the verdict to which its estimate points, were
  // estimate and spread true (planning.h; pass at level alpha, regression at alpha / k). None: more than
  // kMostBlocks, an estimate of exactly delta, or no spread to plan with.
  std::optional<uint64_t> blocks_to_decide;
};

struct RunVerdict {
  GateVerdict verdict = GateVerdict::inconclusive;
  std::string reason;
  std::optional<double> pass_p;              // intersection-union; absent where a cell is undecidable
  std::optional<uint64_t> blocks_to_decide;  // largest over the undecided cells; absent if one lacks it
  std::vector<CellVerdict> cells;            // in the order given
};

// bad_input: no cells, or a policy outside its ranges.
Expected<RunVerdict> judge(std::span<const GatedCell> cells, const GatePolicy& policy = {});

}  // namespace fsbl
