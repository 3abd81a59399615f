// Sign-flip permutation test of paired differences (Fisher, "The design of experiments", 1935, section 21;
// Good, "Permutation, parametric and bootstrap tests of hypotheses", 3rd ed. 2005, section 3.2).
// Null: the differences are symmetric about null_mean; alternative: their mean is greater; no normality.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "harness/core/error.h"

namespace fsbl {

inline constexpr size_t kExactSignFlips = 20;  // up to this n all 2^n sign vectors count

struct SignFlipOptions {
  double null_mean = 0;         // same unit as the differences; 0: "mean > 0", delta: "mean > delta"
  uint64_t seed = 1;            // of the Monte Carlo
  uint64_t resamples = 99'999;  // m, >= 1: the standard error of p = 0.0125 is 0.00035
};

struct SignFlip {
  double p = 1;        // one-sided, in (0, 1]
  std::string method;  // "exact" or "Monte Carlo, m=99999"
};

// p = share of sign vectors whose mean is at least the observed one; the identity is one of them, so p is
// never 0: exact >= 2^-n; Monte Carlo (b + 1) / (m + 1) (Davison and Hinkley, "Bootstrap methods and their
// application", 1997, section 4.2.1). Sums within 1e-12 of the sum of the absolute values are ties, and
// count. Pure: same input and seed, same p. Memory: 2^(n/2) values when exact, n otherwise.
//
// bad_input: no differences, one that is not finite (also after null_mean is taken off), or resamples 0.
Expected<SignFlip> sign_flip_test(std::span<const double> differences, const SignFlipOptions& options = {});

}  // namespace fsbl
