// Several hypotheses at once. Pure functions; valid under any dependence between the p-values.
#pragma once
#include <span>
#include <vector>

#include "harness/core/error.h"

namespace fsbl {

// Holm's step-down adjusted p-values, in the order of the input (Holm, "A simple sequentially rejective
// multiple test procedure", Scand. J. Statist. 6, 1979): with p(1) <= ... <= p(m), the i-th is max over j <=
// i of min(1, (m - j + 1) p(j)). Rejecting where the adjusted p < alpha keeps the family-wise error <= alpha.
// None in, none out.
//
// bad_input: a p that is NaN or outside [0, 1].
Expected<std::vector<double>> holm_adjusted(std::span<const double> p);

// Intersection-union test (Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics
// 24, 1982): the p of "every cell passes" is the largest one. It is < alpha only if every cell's is, each at
// the full alpha without correction, and the error of the whole stays <= alpha.
//
// bad_input: no p (nothing passes by default), or one that is NaN or outside [0, 1].
Expected<double> intersection_union_p(std::span<const double> p);

}  // namespace fsbl
