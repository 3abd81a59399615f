#include <openssl/crypto.h>
#include <openssl/pem.h>

#include "harness/identity/internal.h"

namespace fsbl {
namespace identity {

Expected<PkeyPtr> generate_key(KeyType type) {
  const OpensslErrorScope errors;
  PkeyPtr key(type == KeyType::p256 ? EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")
                                    : EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return fault("generate key", openssl_reason());
  return key;
}

const EVP_MD* signature_digest(const EVP_PKEY* key) {
  return EVP_PKEY_is_a(key, "ED25519") ? nullptr : EVP_sha256();
}

std::string key_type_text(const EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "ED25519")) return "ed25519";
  char group[32] = {};
  size_t length = 0;
  if (EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, group, sizeof group, &length) == 1)
    return std::string_view(group) == "prime256v1" ? "p256" : group;
  const char* name = EVP_PKEY_get0_type_name(key);
  return name ? name : "unknown";
}

std::string bio_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

namespace {

bool add_name(GENERAL_NAMES* names, int type, const std::string& text) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_IA5STRING* value = ASN1_IA5STRING_new();
  if (!name || !value || ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) != 1) {
    ASN1_IA5STRING_free(value);
    GENERAL_NAME_free(name);
    return false;
  }
  GENERAL_NAME_set0_value(name, type, value);
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

}  // namespace

// Built from objects: OpenSSL's text form of extensions would give commas and colons of an id a meaning.
ExtensionPtr uri_san(const std::vector<std::string>& uris, const std::string& dns, Critical critical) {
  GeneralNamesPtr names(GENERAL_NAMES_new());
  if (!names) return nullptr;
  for (const auto& uri : uris)
    if (!add_name(names.get(), GEN_URI, uri)) return nullptr;
  if (!dns.empty() && !add_name(names.get(), GEN_DNS, dns)) return nullptr;
  return ExtensionPtr(X509V3_EXT_i2d(NID_subject_alt_name, critical == Critical::yes, names.get()));
}

}  // namespace identity

using namespace identity;

Expected<KeyPair> make_key_and_csr(KeyType type, const SpiffeId& id) {
  const OpensslErrorScope errors;
  const std::string what = "make key and certificate request";
  FSBL_TRY(parse_spiffe_id(id.text()).map_error([&](const Error& e) { return e.in(what); }));
  FSBL_ASSIGN(PkeyPtr key, generate_key(type));

  X509ReqPtr request(X509_REQ_new());
  ExtensionsPtr extensions(sk_X509_EXTENSION_new_null());
  ExtensionPtr san = uri_san({id.text()}, {}, Critical::yes);
  if (!request || !extensions || !san || sk_X509_EXTENSION_push(extensions.get(), san.get()) <= 0)
    return fault(what, openssl_reason());
  (void)san.release();  // the stack owns it now
  if (X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_add_extensions(request.get(), extensions.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), signature_digest(key.get())) <= 0)
    return fault(what, openssl_reason());

  // A BIO of s_secmem overwrites its buffer when it is freed.
  BioPtr secret(BIO_new(BIO_s_secmem())), csr(BIO_new(BIO_s_mem()));
  if (!secret || !csr ||
      PEM_write_bio_PKCS8PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509_REQ(csr.get(), request.get()) != 1)
    return fault(what, openssl_reason());
  return KeyPair{bio_text(secret.get()), bio_text(csr.get())};
}

void wipe(std::string& secret) noexcept {
  secret.resize(secret.capacity());  // never allocates; earlier, longer contents may lie behind size()
  OPENSSL_cleanse(secret.data(), secret.size());
  secret.clear();
}

}  // namespace fsbl
