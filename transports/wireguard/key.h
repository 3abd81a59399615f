// Curve25519 keys of WireGuard. The secret half lives in memory only and is overwritten when its owner goes.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/error.h"

namespace fsbl::wireguard {

using PublicKey = std::array<uint8_t, 32>;

class SecretKey {
 public:
  SecretKey() = default;
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&& other) noexcept;
  ~SecretKey();
  std::array<uint8_t, 32> bytes{};
};

struct KeyPair {
  SecretKey secret;
  PublicKey public_key{};
};
Expected<KeyPair> make_key_pair();

std::string to_hex(std::span<const uint8_t, 32> key);  // of a secret key: the caller wipes it
std::string to_base64(const PublicKey& key);
Expected<PublicKey> public_key_from_base64(std::string_view text);

}  // namespace fsbl::wireguard
