// For tests: TLS 1.3 record protection that shares no code with the record layer: HKDF-Expand-Label by HMAC,
// sealing and opening by EVP, one record at a time. Seals any inner plaintext, also what no good peer would
// send.
#pragma once
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "harness/identity/openssl.h"
#include "transports/record/aead.h"
#include "transports/record/traffic_keys.h"

namespace fsbl::records {

using Blob = std::vector<std::byte>;

inline Blob from_hex(std::string_view text) {
  Blob out;
  int high = -1;
  for (char c : text) {
    if (c == ' ') continue;
    const int digit = c >= 'a' ? c - 'a' + 10 : c - '0';
    if (high >= 0) out.push_back(static_cast<std::byte>(high * 16 + digit));
    high = high >= 0 ? -1 : digit;
  }
  return out;
}

inline Blob blob(std::initializer_list<int> values) {
  Blob out;
  for (int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

inline Blob random_blob(std::mt19937_64& random, size_t bytes) {
  Blob out(bytes);
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0) bits = random();
    out[i] = static_cast<std::byte>(bits >> (i % 8 * 8));
  }
  return out;
}

inline void append(Blob& to, std::span<const std::byte> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// One behind the other. Not +, whose sides are evaluated in any order: here both may seal with the same
// sequence number.
inline Blob operator<<(Blob left, const Blob& right) {
  append(left, right);
  return left;
}

inline Blob part(const Blob& of, size_t at, size_t bytes = SIZE_MAX) {
  return {of.begin() + static_cast<ptrdiff_t>(at),
          of.begin() + static_cast<ptrdiff_t>(at + std::min(bytes, of.size() - at))};
}

inline Suite suite_for(Cipher cipher) {
  return {cipher, cipher == Cipher::aes_256_gcm ? Hash::sha384 : Hash::sha256};
}

// The first block of HKDF-Expand (RFC 5869, 2.3): HMAC(secret, HkdfLabel || 0x01). Enough for keys, ivs and
// secrets.
inline Blob oracle_expand_label(Hash hash, std::span<const std::byte> secret, std::string_view label,
                                size_t bytes) {
  const std::string name = "tls13 " + std::string(label);
  Blob info = {std::byte{0}, static_cast<std::byte>(bytes), static_cast<std::byte>(name.size())};
  for (char c : name) info.push_back(static_cast<std::byte>(c));
  info.push_back(std::byte{0});
  info.push_back(std::byte{1});
  Blob block(hash == Hash::sha256 ? 32 : 48);
  unsigned int n = 0;
  HMAC(hash == Hash::sha256 ? EVP_sha256() : EVP_sha384(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(info.data()), info.size(),
       reinterpret_cast<unsigned char*>(block.data()), &n);
  block.resize(bytes);
  return block;
}

enum Type : uint8_t { kChangeCipherSpecType = 20, kAlertType = 21, kHandshakeType = 22, kDataType = 23 };

// One direction of a connection, as an independent party sees it.
class Oracle {
 public:
  Oracle(Suite suite, std::span<const std::byte> secret, uint64_t sequence = 0)
      : sequence(sequence), suite_(suite), secret_(secret.begin(), secret.end()) {
    derive();
  }

  struct Inner {
    uint8_t type = 0;
    Blob content;
    size_t zeros = 0;
  };

  // The record whose inner plaintext is `content`, `type` and so many zeros (RFC 8446, 5.2).
  Blob seal(std::span<const std::byte> content, uint8_t type = kDataType, size_t zeros = 0) {
    Blob inner(content.begin(), content.end());
    inner.push_back(static_cast<std::byte>(type));
    inner.resize(inner.size() + zeros);
    return seal_inner(inner);
  }
  Blob seal_inner(std::span<const std::byte> inner) {
    const size_t behind = inner.size() + 16;
    Blob record = blob({23, 3, 3, static_cast<int>(behind >> 8), static_cast<int>(behind & 255)});
    record.resize(5 + behind);
    run(1, record, inner, record.data() + 5 + inner.size());
    ++sequence;
    return record;
  }

  // The next record of this direction; none: it does not authenticate.
  std::optional<Inner> open(std::span<const std::byte> record) {
    if (record.size() < 5 + 17 ||
        (static_cast<size_t>(record[3]) << 8 | static_cast<size_t>(record[4])) != record.size() - 5)
      return std::nullopt;
    Blob copy(record.begin(), record.end());
    const Blob ciphertext(copy.begin() + 5, copy.end() - 16);
    if (!run(0, copy, ciphertext, copy.data() + copy.size() - 16)) return std::nullopt;
    ++sequence;
    Inner inner;
    inner.content.assign(copy.begin() + 5, copy.end() - 16);
    while (!inner.content.empty() && inner.content.back() == std::byte{0}) {
      inner.content.pop_back();
      ++inner.zeros;
    }
    if (inner.content.empty()) return inner;
    inner.type = static_cast<uint8_t>(inner.content.back());
    inner.content.pop_back();
    return inner;
  }

  void update() {  // RFC 8446, 7.2
    secret_ = oracle_expand_label(suite_.hash, secret_, "traffic upd", secret_.size());
    derive();
    sequence = 0;
  }

  uint64_t sequence;

 private:
  void derive() {
    key_ = oracle_expand_label(suite_.hash, secret_, "key", suite_.cipher == Cipher::aes_128_gcm ? 16 : 32);
    iv_ = oracle_expand_label(suite_.hash, secret_, "iv", 12);
  }
  // Of `text` to behind the header of `record`, whose first five bytes are authenticated with it.
  bool run(int seals, Blob& record, std::span<const std::byte> text, std::byte* tag) const {
    const EVP_CIPHER* cipher = suite_.cipher == Cipher::aes_128_gcm   ? EVP_aes_128_gcm()
                               : suite_.cipher == Cipher::aes_256_gcm ? EVP_aes_256_gcm()
                                                                      : EVP_chacha20_poly1305();
    Blob nonce = iv_;
    for (int i = 0; i < 8; ++i)
      nonce[static_cast<size_t>(4 + i)] ^= static_cast<std::byte>(sequence >> (56 - 8 * i));
    const std::unique_ptr<EVP_CIPHER_CTX, OpensslFree<EVP_CIPHER_CTX_free>> ctx(EVP_CIPHER_CTX_new());
    auto* at = reinterpret_cast<unsigned char*>(record.data());
    int n = 0;
    bool ok =
        EVP_CipherInit_ex(ctx.get(), cipher, nullptr, reinterpret_cast<const unsigned char*>(key_.data()),
                          reinterpret_cast<const unsigned char*>(nonce.data()), seals) == 1 &&
        EVP_CipherUpdate(ctx.get(), nullptr, &n, at, 5) == 1;
    if (ok && !text.empty())
      ok = EVP_CipherUpdate(ctx.get(), at + 5, &n, reinterpret_cast<const unsigned char*>(text.data()),
                            static_cast<int>(text.size())) == 1;
    if (ok && !seals) ok = EVP_CIPHER_CTX_ctrl(ctx.get(), EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1;
    unsigned char rest[32];
    ok = ok && EVP_CipherFinal_ex(ctx.get(), rest, &n) == 1;
    if (ok && seals) ok = EVP_CIPHER_CTX_ctrl(ctx.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
    return ok;
  }

  Suite suite_;
  Blob secret_, key_, iv_;
};

// Post-handshake messages.
inline Blob key_update(int request) {
  return blob({24, 0, 0, 1, request});
}
inline Blob message(int type, std::span<const std::byte> body) {
  return blob({type, static_cast<int>(body.size() >> 16), static_cast<int>(body.size() >> 8 & 255),
               static_cast<int>(body.size() & 255)})
         << Blob(body.begin(), body.end());
}

}  // namespace fsbl::records
