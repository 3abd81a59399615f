// Log-linear histogram of non-negative 64-bit values with 3 significant decimal digits, in the layout of
// HdrHistogram (Gil Tene, hdrhistogram.org) so that its V2 wire format is exact. 64-bit counts.
// record() is the hot path: no allocation, lock, branch on configuration, or exception.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/error.h"

namespace fsbl {

class Histogram {
 public:
  static constexpr int kSignificantDigits = 3;
  static constexpr int64_t kSubBucketCount = 2048;      // 2 * 10^3, rounded up to a power of two
  static constexpr int64_t kSubBucketHalf = 1024;

  // Values in [0, highest]; larger ones are recorded as `highest` and counted in clipped(). Default: one hour in ns.
  explicit Histogram(int64_t highest = 3'600'000'000'000);

  void record(int64_t value) noexcept {
    if (value < 0) value = 0, ++clipped_;
    if (value > highest_) value = highest_, ++clipped_;
    ++counts_[index_of(value)];
    ++total_;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  uint64_t count() const { return total_; }
  uint64_t clipped() const { return clipped_; }
  int64_t min() const;                                  // exact; 0 when empty
  int64_t max() const;                                  // exact; 0 when empty
  double mean() const;                                  // of bucket midpoints
  int64_t highest() const { return highest_; }
  // Smallest recorded bucket value v (highest equivalent, never above max, never below min) such that at least
  // ceil(q * count) samples are <= v; q in [0, 1]. nullopt when empty.
  std::optional<int64_t> quantile(double q) const;
  void merge(const Histogram& other);                   // counts add; ranges must be equal or other's smaller
  void reset();

  // HdrHistogram V2: zigzag LEB128 with zero runs, cookie 0x1c849303|0x10; deflate wrapper cookie 0x1c849304|0x10;
  // base64 with padding ("HISTFAAAA..."). decode refuses damaged, oversized and foreign input by name.
  std::string encode_base64() const;
  static Expected<Histogram> decode_base64(std::string_view text);

  // Bucket arithmetic, exposed for tests and for code that fills a histogram elsewhere (BPF maps).
  static size_t index_of(int64_t value) noexcept {
    const int bucket = 53 - std::countl_zero(static_cast<uint64_t>(value) | (kSubBucketCount - 1));
    const int64_t sub = value >> bucket;
    return static_cast<size_t>(((bucket + 1) << 10) + (sub - kSubBucketHalf));
  }
  static int64_t lowest_value_of(size_t index) noexcept;
  static int64_t highest_value_of(size_t index) noexcept;

 private:
  int64_t highest_;
  std::vector<uint64_t> counts_;
  uint64_t total_ = 0, clipped_ = 0;
  int64_t min_ = INT64_MAX, max_ = 0;
};

}  // namespace fsbl
