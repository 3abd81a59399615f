// Seeded draws for the simulations in this layer's tests; no part of the library.
#pragma once
#include <cmath>
#include <cstddef>
#include <vector>

#include "harness/core/random.h"

namespace fsbl {

inline double uniform_draw(SplitMix64& random) {  // in (0, 1)
  return (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
}

// Box and Muller (1958), one of the pair.
inline double normal_draw(SplitMix64& random) {
  const double radius = std::sqrt(-2 * std::log(uniform_draw(random)));
  return radius * std::cos(2 * M_PI * uniform_draw(random));
}

inline std::vector<double> normal_draws(SplitMix64& random, size_t n, double mean, double sd) {
  std::vector<double> values(n);
  for (double& value : values) value = mean + sd * normal_draw(random);
  return values;
}

}  // namespace fsbl
