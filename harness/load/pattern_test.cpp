// The pattern sees every change of the bytes that a flow carries: a wrong byte, a shift, a swap, another flow's.
#include "harness/load/pattern.h"

#include <gtest/gtest.h>

namespace fsbl {
namespace {

std::vector<std::byte> stretch(const Pattern& pattern, uint64_t position, size_t size) {
  std::vector<std::byte> bytes;
  while (bytes.size() < size) {
    const auto more = pattern.at(position + bytes.size(), size - bytes.size());
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

TEST(Pattern, IsWhatSplitMix64SaysWithItsPeriod) {
  // Brute force: the definition, byte by byte.
  const Pattern pattern(42);
  SplitMix64 random(42);
  std::vector<std::byte> period(Pattern::kPeriod);
  for (std::byte& byte : period) byte = static_cast<std::byte>(random.next() >> 56);
  const auto bytes = stretch(pattern, 0, 3 * Pattern::kPeriod + 100);
  for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], period[i % Pattern::kPeriod]) << i;
  for (uint64_t position : {uint64_t{1}, uint64_t{Pattern::kPeriod - 1}, uint64_t{Pattern::kPeriod}, (uint64_t{1} << 62) + 5}) {
    const auto view = pattern.at(position, 1000);
    for (size_t i = 0; i < view.size(); ++i) ASSERT_EQ(view[i], period[(position + i) % Pattern::kPeriod]);
  }
}

TEST(Pattern, LendsNoMoreThanItsLongestChunk) {
  const Pattern pattern(1);
  EXPECT_EQ(pattern.at(0, 10).size(), 10u);
  EXPECT_EQ(pattern.at(Pattern::kPeriod - 1, uint64_t{1} << 40).size(), Pattern::kMaxChunk);
  EXPECT_TRUE(pattern.at(0, 0).empty());
  EXPECT_TRUE(pattern.equal(7, stretch(pattern, 7, 3 * Pattern::kMaxChunk + 1)));
}

TEST(Pattern, DiffersBySeedFlowAndDirection) {
  const Pattern one(1), two(2);
  EXPECT_FALSE(one.equal(0, stretch(two, 0, 100)));
  for (uint32_t flow = 0; flow < 500; ++flow) {
    const uint64_t up = Pattern::start_of(flow, Role::client), down = Pattern::start_of(flow, Role::server);
    EXPECT_FALSE(one.equal(up, stretch(one, down, 64))) << flow;
    EXPECT_FALSE(one.equal(up, stretch(one, Pattern::start_of(flow + 1, Role::client), 64))) << flow;
  }
}

// What a mode must notice in `bytes`, fed in reads of `read` bytes after `skip` reads that were right.
bool accepts(Verify mode, const Pattern& pattern, std::span<const std::byte> bytes, size_t read) {
  Verifier verifier(pattern, 1000, mode);
  bool good = true;
  for (size_t at = 0; at < bytes.size(); at += read) good &= verifier.take(bytes.subspan(at, std::min(read, bytes.size() - at)));
  return good;
}

TEST(Verifier, AcceptsTheRightBytesHoweverTheyAreCut) {
  const Pattern pattern(3);
  const auto bytes = stretch(pattern, 1000, 400'000);
  for (Verify mode : {Verify::sampled, Verify::full})
    for (size_t read : {1u, 63u, 64u, 65u, 129u, 16384u, 300'000u}) EXPECT_TRUE(accepts(mode, pattern, bytes, read)) << read;
  Verifier verifier(pattern, 1000, Verify::full);
  EXPECT_TRUE(verifier.take({}));
}

TEST(Verifier, FullSeesOneWrongByteAnywhere) {
  const Pattern pattern(3);
  const auto right = stretch(pattern, 1000, 70'000);
  SplitMix64 random(1);
  for (int i = 0; i < 200; ++i) {
    auto bytes = right;
    bytes[random.below(bytes.size())] ^= static_cast<std::byte>(1 + random.below(255));
    EXPECT_FALSE(accepts(Verify::full, pattern, bytes, 1 + random.below(20'000)));
  }
}

TEST(Verifier, BothModesSeeShiftsSwapsRepetitionsAndLosses) {
  const Pattern pattern(3);
  const auto right = stretch(pattern, 1000, 65536);
  const auto piece = [&](size_t at, size_t size) { return std::span(right).subspan(at, size); };
  const auto join = [](std::initializer_list<std::span<const std::byte>> parts) {
    std::vector<std::byte> bytes;
    for (const auto& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
  };
  const std::vector<std::byte> wrong[] = {
      join({piece(1, 65535)}),                                            // shifted by one byte
      join({piece(0, 16384), piece(32768, 16384), piece(16384, 16384)}),  // two records swapped
      join({piece(0, 16384), piece(0, 16384)}),                           // one repeated
      join({piece(0, 16384), piece(32768, 16384)}),                       // one lost
      join({piece(0, 16384), piece(16385, 16383)}),                       // one byte lost
  };
  for (Verify mode : {Verify::sampled, Verify::full})
    for (const auto& bytes : wrong) {
      EXPECT_FALSE(accepts(mode, pattern, bytes, 16384));
      EXPECT_FALSE(accepts(mode, pattern, bytes, 1000));
    }
}

TEST(Verifier, SampledLooksAtTheEdgesOfEveryReadAndAtEvery64thWhole) {
  // This is the mode's bargain, so that it can be named in a result: what it is not asked to see, it doesn't.
  const Pattern pattern(3);
  constexpr size_t kRead = 1000;
  const auto right = stretch(pattern, 1000, 130 * kRead);
  for (size_t read = 0; read < 130; ++read)
    for (size_t at : {0u, 63u, 64u, 500u, 935u, 936u, 999u}) {
      auto bytes = right;
      bytes[read * kRead + at] ^= std::byte{1};
      const bool seen = read % 64 == 0 || at < 64 || at >= kRead - 64;
      EXPECT_EQ(accepts(Verify::sampled, pattern, bytes, kRead), !seen) << read << ' ' << at;
    }
}

}  // namespace
}  // namespace fsbl
