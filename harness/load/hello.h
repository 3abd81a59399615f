// The first message of every flow and its answer. They carry the canary, outside the measured window, and make the
// client wait for the first authenticated byte from the server (TLS 1.3 clients learn late of a refusal).
// Little-endian, fixed size.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

static_assert(std::endian::native == std::endian::little, "the hello is written as it lies in memory");

namespace fsbl {

inline constexpr size_t kCanaryBytes = 32;
using Canary = std::array<char, kCanaryBytes>;

struct Hello {
  char magic[8] = {'F', 'S', 'B', 'L', 'h', 'e', 'l', '1'};
  uint32_t flow = 0;
  uint32_t reserved = 0;
  Canary canary{};
};
struct Ready {
  char magic[8] = {'F', 'S', 'B', 'L', 'r', 'd', 'y', '1'};
  uint32_t flow = 0;
  uint32_t reserved = 0;
  Canary canary{};
};
static_assert(sizeof(Hello) == 48 && sizeof(Ready) == 48);

template <class Message>
std::span<const std::byte> bytes_of(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}
template <class Message>
bool is_valid(const Message& message) {
  const Message fresh;
  return std::memcmp(message.magic, fresh.magic, sizeof fresh.magic) == 0;
}

}  // namespace fsbl
