// Keys of the TLS 1.3 record protection from traffic secrets (RFC 8446, 7.1 to 7.3).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/core/error.h"
#include "transports/record/aead.h"

namespace fsbl {

enum class Hash : uint8_t { sha256, sha384 };
inline constexpr size_t hash_bytes(Hash hash) { return hash == Hash::sha256 ? 32 : 48; }

struct Suite {   // RFC 8446, B.4
  Cipher cipher = Cipher::aes_256_gcm;
  Hash hash = Hash::sha384;
};
Expected<Suite> suite_of(std::string_view tls_name);   // "TLS_AES_256_GCM_SHA384"

struct TrafficKey {   // wiped when it dies
  std::array<std::byte, 32> key{};          // the first key_bytes(cipher)
  std::array<std::byte, kNonceBytes> iv{};
  ~TrafficKey() { explicit_bzero(this, sizeof *this); }
};

// HKDF-Expand-Label(secret, label, "", out.size()). False only when OpenSSL fails.
bool expand_label(Hash hash, std::span<const std::byte> secret, std::string_view label, std::span<std::byte> out) noexcept;

// [sender]_write_key and [sender]_write_iv of `secret` (7.3).
bool derive_key(const Suite& suite, std::span<const std::byte> secret, TrafficKey& key) noexcept;
// application_traffic_secret_N+1, in place (7.2).
bool update_secret(Hash hash, std::span<std::byte> secret) noexcept;

// The per-record nonce (5.3): the sequence number, big endian, XORed into the end of the iv.
inline std::array<std::byte, kNonceBytes> record_nonce(const std::array<std::byte, kNonceBytes>& iv, uint64_t sequence) noexcept {
  std::array<std::byte, kNonceBytes> nonce = iv;
  for (size_t i = 0; i < 8; ++i) nonce[kNonceBytes - 1 - i] ^= static_cast<std::byte>(sequence >> (8 * i));
  return nonce;
}

}  // namespace fsbl
