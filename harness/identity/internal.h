// What the files of this folder share. Functions return the broken rule as text; callers say whose
// certificate it was.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "harness/identity/openssl.h"
#include "harness/identity/svid.h"

namespace fsbl::identity {

// Limits on foreign input: far above any SVID, far below what could hurt.
inline constexpr size_t kMaxCertificateBytes = 16 * 1024;
inline constexpr size_t kMaxChain = 8;
inline constexpr size_t kMaxPemBytes = 1024 * 1024;

template <class T = void>
using Rule = tl::expected<T, std::string>;

enum class Critical { no, yes };  // of an extension

// keys.cpp
Expected<PkeyPtr> generate_key(KeyType type);
const EVP_MD* signature_digest(const EVP_PKEY* key);  // SHA-256; null for Ed25519, which hashes by itself
std::string key_type_text(const EVP_PKEY* key);       // "p256", "ed25519", else OpenSSL's name
std::string bio_text(BIO* bio);
ExtensionPtr uri_san(const std::vector<std::string>& uris, const std::string& dns, Critical critical);

// validator.cpp
std::string serial_hex(const X509* certificate);
Rule<X509StackPtr> parse_pem(std::string_view pem);
Rule<X509Ptr> parse_der(std::string_view der);
// Every URI SAN, in order; DNS and other names are passed over.
Rule<std::vector<std::string>> uris(const GENERAL_NAMES* names);

}  // namespace fsbl::identity
