// Log-linear histogram of non-negative 64-bit values with 3 significant decimal digits, in the layout of
// HdrHistogram (Gil Tene, hdrhistogram.org) so that its V2 wire format is exact. 64-bit counts.
// record() is the hot path: no allocation, lock, branch on configuration, or exception. Not thread-safe: one
// histogram per thread, merged afterwards.
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
  static constexpr int64_t kSubBucketCount = 2048;  // 2 * 10^3, rounded up to a power of two
  static constexpr int64_t kSubBucketHalf = 1024;

  // Values in [0, highest]; larger ones are recorded as `highest`, negative ones as 0, and both are counted
  // in clipped(). Default: one hour in ns. The layout needs highest >= 2; less is taken as 2.
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
  int64_t min() const;  // exact; 0 when empty
  int64_t max() const;  // exact; 0 when empty
  double mean() const;  // of bucket midpoints, within [min, max]; 0 when empty
  int64_t highest() const { return highest_; }
  // Smallest recorded bucket value v (highest equivalent, never above max, never below min) such that at
  // least ceil(q * count) samples are <= v; q in [0, 1], taken as the decimal it was written as (0.07 of 100
  // is 7, although the double is a little more). nullopt when empty.
  std::optional<int64_t> quantile(double q) const;
  // Counts add; what lies beyond this range is clipped as record() does.
  void merge(const Histogram& other);
  void reset();

  // HdrHistogram V2: zigzag LEB128 with zero runs, cookie 0x1c849303|0x10; deflate wrapper cookie
  // 0x1c849304|0x10; base64 with padding ("HISTFAAAA..."). decode refuses damaged, oversized and foreign
  // input by name, and never holds more than the layout of the largest range (about 1 MiB).
  std::string encode_base64() const;
  static Expected<Histogram> decode_base64(std::string_view text);
  // The wire format carries neither exact extremes nor clipped(): after decoding, min and max are bucket
  // bounds. Puts the exact ones back (histogram_json.h carries them); refuses values outside their buckets.
  Expected<> set_exact(int64_t min, int64_t max, uint64_t clipped);

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
