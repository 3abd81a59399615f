// Seeded random numbers that give the same sequence everywhere (std::shuffle and std distributions don't).
// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace fsbl {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound), unbiased (rejection); bound > 0.
  uint64_t below(uint64_t bound) {
    const uint64_t threshold = -bound % bound;
    for (;;)
      if (const uint64_t value = next(); value >= threshold) return value % bound;
  }

 private:
  uint64_t state_;
};

// Fisher-Yates.
template <class T>
void seeded_shuffle(std::vector<T>& items, SplitMix64& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

}  // namespace fsbl
