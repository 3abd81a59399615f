#include "transports/record/traffic_keys.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <string>

#include "harness/identity/openssl.h"

namespace fsbl {

Expected<Suite> suite_of(std::string_view tls_name) {
  if (tls_name == "TLS_AES_128_GCM_SHA256") return Suite{Cipher::aes_128_gcm, Hash::sha256};
  if (tls_name == "TLS_AES_256_GCM_SHA384") return Suite{Cipher::aes_256_gcm, Hash::sha384};
  if (tls_name == "TLS_CHACHA20_POLY1305_SHA256") return Suite{Cipher::chacha20_poly1305, Hash::sha256};
  return unavailable("cipher suite " + std::string(tls_name), "the record layer doesn't know it",
                     "use TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256 or TLS_CHACHA20_POLY1305_SHA256");
}

bool expand_label(Hash hash, std::span<const std::byte> secret, std::string_view label, std::span<std::byte> out) noexcept {
  // struct HkdfLabel { uint16 length; opaque label<7..255> = "tls13 " + Label; opaque context<0..255>; } (7.1)
  std::array<unsigned char, 2 + 1 + 255 + 1> info{};
  size_t n = 0;
  info[n++] = static_cast<unsigned char>(out.size() >> 8);
  info[n++] = static_cast<unsigned char>(out.size());
  info[n++] = static_cast<unsigned char>(6 + label.size());
  for (char c : std::string_view("tls13 ")) info[n++] = static_cast<unsigned char>(c);
  for (char c : label) info[n++] = static_cast<unsigned char>(c);
  info[n++] = 0;

  using KdfPtr = std::unique_ptr<EVP_KDF, OpensslFree<EVP_KDF_free>>;
  using KdfCtxPtr = std::unique_ptr<EVP_KDF_CTX, OpensslFree<EVP_KDF_CTX_free>>;
  const KdfPtr kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const KdfCtxPtr context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  if (!context) return false;
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  char digest[] = "SHA256";
  if (hash == Hash::sha384) std::copy_n("SHA384", sizeof digest, digest);
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<std::byte*>(secret.data()), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), n), OSSL_PARAM_construct_end()};
  return EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(), params) == 1;
}

bool derive_key(const Suite& suite, std::span<const std::byte> secret, TrafficKey& key) noexcept {
  return expand_label(suite.hash, secret, "key", std::span(key.key).first(key_bytes(suite.cipher))) &&
         expand_label(suite.hash, secret, "iv", key.iv);
}

bool update_secret(Hash hash, std::span<std::byte> secret) noexcept {
  std::array<std::byte, 48> next{};
  const auto out = std::span(next).first(hash_bytes(hash));
  const bool ok = expand_label(hash, secret, "traffic upd", out);
  if (ok) std::copy(out.begin(), out.end(), secret.begin());
  explicit_bzero(next.data(), next.size());
  return ok;
}

}  // namespace fsbl
