// HdrHistogram V2: bytes by hand, an independent encoder, and damage of every kind.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>

#include "harness/core/process.h"
#include "harness/core/random.h"
#include "harness/stats/histogram.h"

namespace fsbl {
namespace {

constexpr const char* kEncoder = FSBL_SOURCE_DIR "/harness/stats/testdata/hdr_v2.py";

// Base64 by the book, bit by bit, for the tests alone.
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
std::string unbase64(std::string_view text) {
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(kAlphabet.find(c));
    if ((held += 6) >= 8) out += static_cast<char>(bits >> (held -= 8) & 0xff);
  }
  return out;
}
std::string base64(std::string_view data) {
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : data) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    for (held += 8; held >= 6;) out += kAlphabet[bits >> (held -= 6) & 63];
  }
  if (held > 0) out += kAlphabet[bits << (6 - held) & 63];
  while (out.size() % 4) out += '=';
  return out;
}

std::string inflated(std::string_view text) {
  const std::string wrapped = unbase64(text).substr(8);
  std::string out(1 << 20, '\0');
  uLongf size = out.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                       reinterpret_cast<const Bytef*>(wrapped.data()), wrapped.size()),
            Z_OK);
  return out.substr(0, size);
}

std::string big_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

// The text of an encoded histogram; what is left at its default is right.
struct Forged {
  uint64_t cookie = 0x1c849313, outer_cookie = 0x1c849314, offset = 0, digits = 3, lowest = 1,
           highest = 1'000'000;
  double ratio = 1;
  std::string payload = std::string("\x02", 1);
  int length_error = 0, outer_length_error = 0;
  std::string trailer;

  std::string text() const {
    const std::string body = big_endian(cookie, 4) + big_endian(payload.size() + length_error, 4) +
                             big_endian(offset, 4) + big_endian(digits, 4) + big_endian(lowest, 8) +
                             big_endian(highest, 8) + big_endian(std::bit_cast<uint64_t>(ratio), 8) + payload;
    std::string packed(compressBound(body.size()), '\0');
    uLongf size = packed.size();
    compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(body.data()),
             body.size());
    packed.resize(size);
    packed += trailer;
    return base64(big_endian(outer_cookie, 4) + big_endian(packed.size() + outer_length_error, 4) + packed);
  }
};

std::string refusal(const std::string& text) {
  const auto decoded = Histogram::decode_base64(text);
  if (decoded) return "";
  EXPECT_EQ(decoded.error().kind, ErrorKind::bad_input);
  return decoded.error().why;
}

void expect_same_counts(const Histogram& a, const Histogram& b) {
  ASSERT_EQ(a.count(), b.count());
  for (double q = 0; q < 1; q += 1.0 / 512)
    ASSERT_EQ(Histogram::index_of(*a.quantile(q)), Histogram::index_of(*b.quantile(q))) << q;
}

TEST(HistogramWire, BytesByHand) {
  Histogram histogram(3'600'000'000'000);
  histogram.record(1);
  for (int i = 0; i < 2; ++i) histogram.record(3);
  for (int i = 0; i < 64; ++i) histogram.record(300);
  histogram.record(4'097);  // slot 3072 (width 4): 2048 slots of width 1, 1024 of width 2
  const std::string payload = {0x00,
                               0x02,  // 0: none, 1: one
                               0x00,
                               0x04,  // 2: none, 3: two
                               static_cast<char>(0xcf),
                               0x04,  // 4..299: -296 → 591 = 0x24f
                               static_cast<char>(0x80),
                               0x01,  // 300: 64 → 128
                               static_cast<char>(0xa5),
                               0x2b,   // 301..3071: -2771 → 5541 = 0x15a5
                               0x02};  // 3072: one
  const std::string expected = big_endian(0x1c849313, 4) + big_endian(payload.size(), 4) + big_endian(0, 4) +
                               big_endian(3, 4) + big_endian(1, 8) + big_endian(3'600'000'000'000, 8) +
                               big_endian(0x3ff0000000000000, 8) + payload;
  const std::string text = histogram.encode_base64();
  EXPECT_TRUE(text.starts_with("HISTFAAAA")) << text;
  EXPECT_EQ(inflated(text), expected);
}

TEST(HistogramWire, EmptyIsOneZero) {
  const std::string text = Histogram().encode_base64();
  EXPECT_EQ(inflated(text).substr(40), std::string(1, '\0'));
  const auto decoded = Histogram::decode_base64(text);
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->count(), 0u);
  EXPECT_EQ(decoded->highest(), Histogram().highest());
}

// Made once by testdata/hdr_v2.py 3600000000000 0=1 7=5 2047=2 2048=1 123456=4294967301 3599999999999=9
TEST(HistogramWire, ReadsAKnownText) {
  const auto decoded = Histogram::decode_base64(
      "HISTFAAAADN4nJNpmSzMwMAgxAABzFCaEch0M9ixgMH+A0SAiZvrrTwLU39cV0NDg0JzD7MQAM4ICcE=");
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->count(), 1u + 5 + 2 + 1 + 4294967301u + 9);
  EXPECT_EQ(decoded->min(), 0);
  EXPECT_EQ(decoded->max(), 3'600'000'000'000);  // the slot reaches past the range
  EXPECT_EQ(decoded->highest(), 3'600'000'000'000);
  EXPECT_EQ(decoded->quantile(0.5), Histogram::highest_value_of(Histogram::index_of(123'456)));
}

TEST(HistogramWire, AgreesWithTheIndependentEncoder) {
  SplitMix64 random(6);
  for (int round = 0; round < 8; ++round) {
    const int64_t highest = 2 + static_cast<int64_t>(random.next() >> (2 + random.below(52)));
    Histogram histogram(highest);
    std::vector<std::string> argv = {"/usr/bin/python3", kEncoder, std::to_string(highest)};
    for (int i = 0; i < 40 * round; ++i) {
      const auto value =
          static_cast<int64_t>(random.below(static_cast<uint64_t>(highest)) >> random.below(30));
      const uint64_t count = 1 + random.below(200);
      for (uint64_t j = 0; j < count; ++j) histogram.record(value);
      argv.push_back(fmt::format("{}={}", value, count));
    }
    std::sort(argv.begin() + 3, argv.end());
    if (std::adjacent_find(argv.begin() + 3, argv.end(), [](const auto& a, const auto& b) {
          return a.substr(0, a.find('=')) == b.substr(0, b.find('='));
        }) != argv.end())
      continue;  // the encoder takes each value once
    const auto output = run_command(argv, 30'000'000'000);
    if (!output) GTEST_SKIP() << "python3: " << output.error().message();
    ASSERT_EQ(output->status, 0) << output->err;
    const std::string text = output->out.substr(0, output->out.find('\n'));
    EXPECT_EQ(inflated(histogram.encode_base64()), inflated(text)) << "highest " << highest;
    const auto decoded = Histogram::decode_base64(text);
    ASSERT_TRUE(decoded) << decoded.error().message();
    if (histogram.count() > 0) expect_same_counts(*decoded, histogram);
  }
}

TEST(HistogramWire, RoundTripKeepsEveryCount) {
  SplitMix64 random(7);
  for (const int64_t highest : {int64_t{2}, int64_t{2048}, int64_t{3'600'000'000'000}, INT64_MAX}) {
    Histogram histogram(highest);
    for (int i = 0; i < 3000; ++i)
      histogram.record(static_cast<int64_t>(random.next() >> (1 + random.below(62))));
    const auto decoded = Histogram::decode_base64(histogram.encode_base64());
    ASSERT_TRUE(decoded) << decoded.error().message();
    expect_same_counts(*decoded, histogram);
    EXPECT_EQ(decoded->encode_base64(), histogram.encode_base64());
    EXPECT_LE(decoded->min(), histogram.min());
    EXPECT_GE(decoded->max(), histogram.max());
    EXPECT_EQ(decoded->highest(), highest);
  }
}

TEST(HistogramWire, RefusesForeignAndDamagedByName) {
  ASSERT_EQ(refusal(Forged().text()), "");
  EXPECT_EQ(refusal(""), "too short");
  EXPECT_EQ(refusal("HIST"), "too short");
  EXPECT_EQ(refusal("HISTF"), "base64 is cut off");
  EXPECT_EQ(refusal("HI!T"), "character 2 is not base64");
  EXPECT_EQ(refusal("HI=T"), "character 2 is not base64");
  EXPECT_EQ(refusal("AAAB===="), "character 4 is not base64");
  EXPECT_EQ(refusal("AAB="), "base64 ends in stray bits");
  EXPECT_EQ(refusal(std::string(4 << 20, 'A')), "4194304 characters are more than any histogram needs");
  EXPECT_NE(refusal(Forged{.cookie = 0x1c849303}.text()).find("inner cookie 0x1c849303"), std::string::npos);
  EXPECT_NE(refusal(Forged{.outer_cookie = 0x1c849304}.text()).find("cookie 0x1c849304"), std::string::npos);
  EXPECT_EQ(refusal(Forged{.offset = 1}.text()), "has a normalizing index offset, which fsbl does not use");
  EXPECT_EQ(refusal(Forged{.digits = 2}.text()), "has 2 significant digits, fsbl uses 3");
  EXPECT_EQ(refusal(Forged{.lowest = 1000}.text()), "has lowest discernible value 1000, fsbl uses 1");
  EXPECT_EQ(refusal(Forged{.highest = 1}.text()), "highest trackable value 1 is out of range");
  EXPECT_EQ(refusal(Forged{.highest = UINT64_MAX}.text()), "highest trackable value -1 is out of range");
  EXPECT_EQ(refusal(Forged{.ratio = 1000}.text()), "has a conversion ratio other than 1");
  EXPECT_EQ(refusal(Forged{.length_error = 5}.text()), "announces 6 payload bytes, has 1");
  EXPECT_NE(refusal(Forged{.outer_length_error = -1}.text()).find("announces"), std::string::npos);
  EXPECT_EQ(refusal(Forged{.trailer = "x"}.text()), "bytes follow the zlib stream");
  EXPECT_EQ(refusal(Forged{.payload = "\x80"}.text()), "a count is cut off");
  EXPECT_EQ(refusal(Forged{.highest = 2, .payload = std::string(2048, '\x02')}.text()), "")
      << "one whole bucket";
  EXPECT_EQ(refusal(Forged{.highest = 2, .payload = std::string(2049, '\x02')}.text()),
            "counts lie beyond the highest value 2");
  // A run of 2^63 empty slots: the longest number there is.
  EXPECT_EQ(refusal(Forged{.payload = std::string(9, '\xff')}.text()),
            "counts lie beyond the highest value 1000000");
  const std::string most = std::string("\xfe", 1) + std::string(8, '\xff');  // 2^63 - 1
  EXPECT_EQ(refusal(Forged{.payload = most}.text()), "");
  EXPECT_EQ(refusal(Forged{.payload = most + "\x02"}.text()), "more than 2^63 values");
  EXPECT_NE(refusal(Forged{.payload = std::string(1 << 20, '\0')}.text()).find("inflates to more than"),
            std::string::npos);
}

TEST(HistogramWire, EveryCutAndEveryChangedCharacterIsNoticed) {
  Histogram histogram;
  SplitMix64 random(8);
  for (int i = 0; i < 300; ++i) histogram.record(static_cast<int64_t>(random.below(1'000'000)));
  const std::string text = histogram.encode_base64();
  for (size_t length = 0; length < text.size(); ++length)
    ASSERT_NE(refusal(text.substr(0, length)), "") << "cut to " << length;
  for (size_t i = 0; i < text.size(); ++i)
    for (const char c : {'A', 'x', '/', '=', '\0', '\xff'}) {
      if (text[i] == c) continue;
      std::string damaged = text;
      damaged[i] = c;
      const auto decoded = Histogram::decode_base64(damaged);
      // Only the padding bits behind the last deflate block carry nothing.
      if (decoded) {
        ASSERT_EQ(decoded->encode_base64(), text) << "character " << i;
      }
    }
}

}  // namespace
}  // namespace fsbl
