#include "transports/wireguard/key.h"

#include <openssl/crypto.h>

#include "harness/identity/openssl.h"

namespace fsbl::wireguard {

SecretKey::SecretKey(SecretKey&& other) noexcept : bytes(other.bytes) {
  OPENSSL_cleanse(other.bytes.data(), other.bytes.size());
}

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  if (this != &other) {
    bytes = other.bytes;
    OPENSSL_cleanse(other.bytes.data(), other.bytes.size());
  }
  return *this;
}

SecretKey::~SecretKey() {
  OPENSSL_cleanse(bytes.data(), bytes.size());
}

Expected<KeyPair> make_key_pair() {
  const OpensslErrorScope errors;
  const PkeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
  KeyPair pair;
  size_t secret_size = pair.secret.bytes.size(), public_size = pair.public_key.size();
  if (!key || EVP_PKEY_get_raw_private_key(key.get(), pair.secret.bytes.data(), &secret_size) != 1 ||
      EVP_PKEY_get_raw_public_key(key.get(), pair.public_key.data(), &public_size) != 1)
    return fault("make WireGuard key", openssl_reason());
  return pair;
}

std::string to_hex(std::span<const uint8_t, 32> key) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * key.size());  // no reallocation: it would leave a copy behind
  for (const uint8_t byte : key) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string to_base64(const PublicKey& key) {
  unsigned char text[45];
  EVP_EncodeBlock(text, key.data(), static_cast<int>(key.size()));
  return reinterpret_cast<const char*>(text);
}

Expected<PublicKey> public_key_from_base64(std::string_view text) {
  const auto malformed = [] { return bad_input("read WireGuard public key", "not 32 bytes in base64"); };
  unsigned char bytes[33];
  if (text.size() != 44 || text[43] != '=' || text.find('=') != 43 ||
      EVP_DecodeBlock(bytes, reinterpret_cast<const unsigned char*>(text.data()), 44) != 33)
    return malformed();
  PublicKey key;
  std::copy_n(bytes, key.size(), key.begin());
  if (to_base64(key) != text) return malformed();  // stray bits or white space
  return key;
}

}  // namespace fsbl::wireguard
