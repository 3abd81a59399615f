// HdrHistogram's V2 wire format. Big-endian throughout:
//   compressed: u32 cookie 0x1c849314, u32 length, zlib stream of
//   encoded:    u32 cookie 0x1c849313, u32 payload length, u32 normalizing index offset (0), u32 significant
//   digits,
//               u64 lowest discernible value (1), u64 highest trackable value, f64 conversion ratio (1.0),
//               then
//   payload:    ZigZag LEB128 numbers of at most 9 bytes, from index 0 to the largest value's: n >= 0 is a
//   count,
//               -n is a run of n empty slots.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "harness/stats/histogram.h"

namespace fsbl {
namespace {

constexpr uint32_t kEncodedCookie = 0x1c849303 | 0x10;
constexpr uint32_t kCompressedCookie = 0x1c849304 | 0x10;
constexpr size_t kEncodedHeader = 40, kCompressedHeader = 8;
constexpr size_t kMostSlots = 55 << 10;  // range of every int64_t
constexpr size_t kMostEncoded = kEncodedHeader + 9 * kMostSlots;
constexpr size_t kMostText = (kMostEncoded + kMostEncoded / 64) / 3 * 4;  // deflate never grows data by more
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

tl::unexpected<Error> refuse(std::string why) {
  return bad_input("decode histogram", std::move(why));
}

template <class T>
void put(std::string& out, T value) {
  for (int shift = 8 * sizeof(T) - 8; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

template <class T>
T get(std::string_view in, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = value << 8 | static_cast<uint8_t>(in[at + i]);
  return value;
}

// The ninth byte holds eight bits, so 9 bytes carry all 64.
void put_zigzag(std::string& out, int64_t number) {
  uint64_t bits = static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63);
  for (int i = 0; i < 8 && bits > 0x7f; ++i, bits >>= 7) {
    out += static_cast<char>((bits & 0x7f) | 0x80);
  }
  out += static_cast<char>(bits);
}

// Advances `at`; nullopt when the number runs past the end.
std::optional<int64_t> get_zigzag(std::string_view in, size_t& at) {
  uint64_t bits = 0;
  for (int i = 0; i < 9; ++i) {
    if (at >= in.size()) return std::nullopt;
    const uint64_t byte = static_cast<uint8_t>(in[at++]);
    bits |= (i == 8 ? byte : byte & 0x7f) << (7 * i);
    if (i == 8 || !(byte & 0x80)) break;
  }
  return static_cast<int64_t>(bits >> 1 ^ -(bits & 1));
}

std::string to_base64(std::string_view in) {
  std::string out;
  for (size_t i = 0; i < in.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < in.size() ? static_cast<uint8_t>(in[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) out += i + j <= in.size() ? kAlphabet[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

Expected<std::string> from_base64(std::string_view in) {
  if (in.size() % 4 != 0) return refuse("base64 is cut off");
  std::string out;
  for (size_t i = 0; i < in.size(); i += 4) {
    size_t letters = 4;
    if (i + 4 == in.size()) letters -= (in[i + 3] == '=') + (in[i + 3] == '=' && in[i + 2] == '=');
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = j < letters ? kAlphabet.find(in[i + j]) : 0;
      if (digit == std::string_view::npos) return refuse(fmt::format("character {} is not base64", i + j));
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t j = 0; j + 1 < letters; ++j) out += static_cast<char>(group >> (16 - 8 * j) & 0xff);
    if (letters < 4 && (group << (8 * (letters - 1)) & 0xffffff) != 0)
      return refuse("base64 ends in stray bits");
  }
  return out;
}

Expected<std::string> inflate_all(std::string_view in) {
  std::string out(kMostEncoded + 1, '\0');
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return fault("decode histogram", "zlib could not start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  const bool too_large = stream.avail_out == 0;
  const bool trailing = stream.avail_in > 0;
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  if (too_large) return refuse(fmt::format("inflates to more than {} bytes", kMostEncoded));
  if (status != Z_STREAM_END) return refuse("the zlib stream is damaged or cut off");
  if (trailing) return refuse("bytes follow the zlib stream");
  return out;
}

}  // namespace

std::string Histogram::encode_base64() const {
  std::string payload;
  const size_t end = index_of(max()) + 1;
  for (size_t i = 0; i < end;) {
    size_t next = i + 1;
    if (counts_[i] == 0)
      while (next < end && counts_[next] == 0) ++next;
    const bool run = next - i > 1;  // a single empty slot is the count 0
    put_zigzag(payload, run ? -static_cast<int64_t>(next - i) : static_cast<int64_t>(counts_[i]));
    i = next;
  }

  std::string encoded;
  put<uint32_t>(encoded, kEncodedCookie);
  put<uint32_t>(encoded, static_cast<uint32_t>(payload.size()));
  put<uint32_t>(encoded, 0);
  put<uint32_t>(encoded, kSignificantDigits);
  put<uint64_t>(encoded, 1);
  put<uint64_t>(encoded, static_cast<uint64_t>(highest_));
  put<uint64_t>(encoded, std::bit_cast<uint64_t>(1.0));
  encoded += payload;

  uLongf size = compressBound(encoded.size());
  std::string deflated(size, '\0');
  // compress2 fails only when its output buffer is smaller than compressBound, or without memory.
  compress2(reinterpret_cast<Bytef*>(deflated.data()), &size, reinterpret_cast<const Bytef*>(encoded.data()),
            encoded.size(), Z_DEFAULT_COMPRESSION);
  deflated.resize(size);
  std::string out;
  put<uint32_t>(out, kCompressedCookie);
  put<uint32_t>(out, static_cast<uint32_t>(deflated.size()));
  return to_base64(out + deflated);
}

Expected<Histogram> Histogram::decode_base64(std::string_view text) {
  if (text.size() > kMostText)
    return refuse(fmt::format("{} characters are more than any histogram needs", text.size()));
  FSBL_ASSIGN(const std::string wrapped, from_base64(text));
  if (wrapped.size() < kCompressedHeader) return refuse("too short");
  if (const auto cookie = get<uint32_t>(wrapped, 0); cookie != kCompressedCookie)
    return refuse(fmt::format("cookie {:#x} is not that of a compressed V2 histogram ({:#x})", cookie,
                              kCompressedCookie));
  if (const auto length = get<uint32_t>(wrapped, 4); length != wrapped.size() - kCompressedHeader)
    return refuse(
        fmt::format("announces {} compressed bytes, has {}", length, wrapped.size() - kCompressedHeader));

  FSBL_ASSIGN(const std::string encoded, inflate_all(std::string_view(wrapped).substr(kCompressedHeader)));
  if (encoded.size() < kEncodedHeader) return refuse("header is cut off");
  if (const auto cookie = get<uint32_t>(encoded, 0); cookie != kEncodedCookie)
    return refuse(
        fmt::format("inner cookie {:#x} is not that of a V2 histogram ({:#x})", cookie, kEncodedCookie));
  if (const auto length = get<uint32_t>(encoded, 4); length != encoded.size() - kEncodedHeader)
    return refuse(fmt::format("announces {} payload bytes, has {}", length, encoded.size() - kEncodedHeader));
  if (get<uint32_t>(encoded, 8) != 0)
    return refuse("has a normalizing index offset, which fsbl does not use");
  if (const auto digits = get<uint32_t>(encoded, 12); digits != kSignificantDigits)
    return refuse(fmt::format("has {} significant digits, fsbl uses {}", digits, kSignificantDigits));
  if (const auto lowest = get<uint64_t>(encoded, 16); lowest != 1)
    return refuse(fmt::format("has lowest discernible value {}, fsbl uses 1", lowest));
  const auto highest = static_cast<int64_t>(get<uint64_t>(encoded, 24));
  if (highest < 2) return refuse(fmt::format("highest trackable value {} is out of range", highest));
  if (get<uint64_t>(encoded, 32) != std::bit_cast<uint64_t>(1.0))
    return refuse("has a conversion ratio other than 1");

  Histogram out(highest);
  size_t index = 0;
  for (size_t at = kEncodedHeader; at < encoded.size();) {
    const auto number = get_zigzag(encoded, at);
    if (!number) return refuse("a count is cut off");
    const uint64_t slots = *number < 0 ? -static_cast<uint64_t>(*number) : 1;
    if (slots > out.counts_.size() - index)
      return refuse(fmt::format("counts lie beyond the highest value {}", highest));
    if (*number > 0) {
      if (static_cast<uint64_t>(*number) > INT64_MAX - out.total_) return refuse("more than 2^63 values");
      out.counts_[index] = static_cast<uint64_t>(*number);
      if (out.total_ == 0) out.min_ = lowest_value_of(index);
      out.max_ = highest_value_of(index);
      out.total_ += static_cast<uint64_t>(*number);
    }
    index += slots;
  }
  // The last bucket may reach past the range.
  if (index_of(out.max_) == index_of(highest)) out.max_ = highest;
  return out;
}

}  // namespace fsbl
