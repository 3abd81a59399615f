#include "harness/stats/multiple.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace fsbl {
namespace {

Expected<> check(const char* what, std::span<const double> p) {
  for (size_t i = 0; i < p.size(); ++i)
    if (!(p[i] >= 0 && p[i] <= 1))
      return bad_input(what, fmt::format("p-value {} of {} is {}", i + 1, p.size(), p[i]),
                       "give values in [0, 1]");
  return {};
}

}  // namespace

Expected<std::vector<double>> holm_adjusted(std::span<const double> p) {
  FSBL_TRY(check("Holm's correction", p));
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [p](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double so_far = 0;
  for (size_t step = 0; step < order.size(); ++step) {
    const double corrected = static_cast<double>(p.size() - step) * p[order[step]];
    so_far = std::max(so_far, std::min(1.0, corrected));
    adjusted[order[step]] = so_far;
  }
  return adjusted;
}

Expected<double> intersection_union_p(std::span<const double> p) {
  if (p.empty()) return bad_input("intersection-union test", "no p-values");
  FSBL_TRY(check("intersection-union test", p));
  return *std::max_element(p.begin(), p.end());
}

}  // namespace fsbl
