#include <openssl/pem.h>

#include <ctime>

#include "harness/identity/internal.h"

namespace fsbl {

using namespace identity;

struct SvidAuthority::State {
  std::string trust_domain, bundle_pem;
  PkeyPtr key;
  X509Ptr root;
};

namespace {

constexpr int kSerialBits = 128;
// Certificates are valid from a little earlier than now: hosts' clocks differ by some seconds, and a peer
// whose clock is behind would refuse a certificate "not yet valid".
constexpr time_t kBackdate = 60;
// A root lives for one run; no run is longer than this.
constexpr time_t kRootLifetime = 30 * 24 * 3600;
constexpr time_t kHour = 3600;

struct Validity {
  time_t from, to;
};

Validity leaf_validity(time_t now, Nanos ttl, const Deviation& deviation) {
  if (deviation.expired) return {now - 2 * kHour, now - kHour};
  if (deviation.not_yet_valid) return {now + kHour, now + 2 * kHour};
  return {now - kBackdate, now + (ttl + 999'999'999) / 1'000'000'000};  // certificates count whole seconds
}

std::string rfc3339(time_t time) {
  tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string key_usage(const Deviation& deviation) {
  std::string usage = "critical";
  usage += deviation.no_digital_signature ? ",keyAgreement" : ",digitalSignature";
  if (deviation.cert_sign) usage += ",keyCertSign";
  if (deviation.crl_sign) usage += ",cRLSign";
  return usage;
}

ExtensionPtr leaf_san(const std::string& id, const Deviation& deviation) {
  if (deviation.no_uri_san) return uri_san({}, "no-uri.invalid", Critical::yes);
  std::vector<std::string> uris = {deviation.uri.value_or(id)};
  if (deviation.two_uri_sans) uris.push_back(uris.front() + "/second");
  return uri_san(uris, {}, Critical::yes);
}

bool add(X509* certificate, ExtensionPtr extension) {
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509V3_set_ctx_nodb(&context);
  return add(certificate, ExtensionPtr(X509V3_EXT_nconf_nid(nullptr, &context, nid, value)));
}

// 128 bits, the first always set, so that every serial is positive and prints as 32 hex digits.
bool set_random_serial(X509* certificate) {
  BignumPtr serial(BN_new());
  return serial && BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate));
}

// Version, serial, validity and key: what root and leaf have alike. Null on failure.
X509Ptr new_certificate(EVP_PKEY* key, Validity validity) {
  X509Ptr certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      !set_random_serial(certificate.get()) || X509_set_pubkey(certificate.get(), key) != 1 ||
      !ASN1_TIME_set(X509_getm_notBefore(certificate.get()), validity.from) ||
      !ASN1_TIME_set(X509_getm_notAfter(certificate.get()), validity.to))
    return nullptr;
  return certificate;
}

std::string to_pem(X509* certificate) {
  BioPtr bio(BIO_new(BIO_s_mem()));
  return bio && PEM_write_bio_X509(bio.get(), certificate) == 1 ? bio_text(bio.get()) : std::string();
}

Expected<X509ReqPtr> checked_request(std::string_view csr_pem, const SpiffeId& id) {
  const std::string what = "check certificate request for " + id.text();
  if (csr_pem.size() > kMaxCertificateBytes) return bad_input(what, "request too long");
  BioPtr bio(BIO_new_mem_buf(csr_pem.data(), static_cast<int>(csr_pem.size())));
  X509ReqPtr request(bio ? PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  if (!request) return bad_input(what, "malformed request: " + openssl_reason());
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (!key || X509_REQ_verify(request.get(), key) != 1)
    return bad_input(what, "the request's signature does not match its key");
  if (const auto type = key_type_text(key); type != "p256" && type != "ed25519")
    return bad_input(what, "key type " + type + " is not offered", "use p256 or ed25519");
  ExtensionsPtr extensions(X509_REQ_get_extensions(request.get()));
  GeneralNamesPtr names(extensions ? static_cast<GENERAL_NAMES*>(X509V3_get_d2i(
                                         extensions.get(), NID_subject_alt_name, nullptr, nullptr))
                                   : nullptr);
  const auto asked = uris(names.get());
  if (!asked) return bad_input(what, asked.error());
  if (asked->size() != 1 || asked->front() != id.text())
    return bad_input(what, "the request does not ask for exactly this id");
  return request;
}

}  // namespace

SvidAuthority::SvidAuthority(std::unique_ptr<State> state) : state_(std::move(state)) {}
SvidAuthority::SvidAuthority(SvidAuthority&&) noexcept = default;
SvidAuthority& SvidAuthority::operator=(SvidAuthority&&) noexcept = default;
SvidAuthority::~SvidAuthority() = default;
const std::string& SvidAuthority::bundle_pem() const {
  return state_->bundle_pem;
}
const std::string& SvidAuthority::trust_domain() const {
  return state_->trust_domain;
}

Expected<SvidAuthority> SvidAuthority::create(std::string_view trust_domain, KeyType type) {
  const OpensslErrorScope errors;
  const std::string what = "create SVID authority";
  const SpiffeId id{std::string(trust_domain), {}};
  FSBL_ASSIGN(const SpiffeId parsed, parse_spiffe_id(id.text()));
  if (parsed != id) return bad_input(what, "trust domain has a path");
  auto state = std::make_unique<State>();
  state->trust_domain = trust_domain;
  FSBL_ASSIGN(state->key, generate_key(type));
  const time_t now = time(nullptr);
  state->root = new_certificate(state->key.get(), {now - kBackdate, now + kRootLifetime});
  X509* root = state->root.get();
  if (!root) return fault(what, openssl_reason());

  // The serial in the name keeps two roots of one trust domain apart.
  const std::string name = "SVID authority " + serial_hex(root);
  X509_NAME* subject = X509_get_subject_name(root);
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) != 1 ||
      X509_set_issuer_name(root, subject) != 1 ||
      !add(root, root, NID_basic_constraints, "critical,CA:TRUE") ||
      !add(root, root, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add(root, root, NID_subject_key_identifier, "hash") ||
      !add(root, uri_san({id.text()}, {}, Critical::no)) ||
      X509_sign(root, state->key.get(), signature_digest(state->key.get())) <= 0)
    return fault(what, openssl_reason());
  state->bundle_pem = to_pem(root);
  if (state->bundle_pem.empty()) return fault(what, openssl_reason());
  return SvidAuthority(std::move(state));
}

Expected<Issued> SvidAuthority::issue(std::string_view csr_pem, const SpiffeId& id, Nanos ttl,
                                      const Deviation& deviation) const {
  const OpensslErrorScope errors;
  const std::string what = "issue SVID for " + id.text();
  FSBL_ASSIGN(const SpiffeId parsed, parse_spiffe_id(id.text()));
  if (parsed != id || id.path.empty()) return bad_input(what, "a leaf's id needs a path");
  if (id.trust_domain != state_->trust_domain)
    return bad_input(what, "this authority signs for " + state_->trust_domain + " only");
  if (ttl <= 0 || ttl / 1'000'000'000 >= kRootLifetime)
    return bad_input(what, "lifetime must be positive and below the root's 30 days");
  FSBL_ASSIGN(const X509ReqPtr request, checked_request(csr_pem, id));

  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  const Validity validity = leaf_validity(time(nullptr), ttl, deviation);
  const X509Ptr leaf = new_certificate(key, validity);
  X509* root = state_->root.get();
  if (!leaf || X509_set_issuer_name(leaf.get(), X509_get_subject_name(root)) != 1 ||
      !add(leaf.get(), root, NID_basic_constraints,
           deviation.ca_true ? "critical,CA:TRUE" : "critical,CA:FALSE") ||
      !add(leaf.get(), root, NID_key_usage, key_usage(deviation).c_str()) ||
      !add(leaf.get(), root, NID_ext_key_usage,
           deviation.server_auth_only ? "serverAuth" : "serverAuth,clientAuth") ||
      !add(leaf.get(), root, NID_subject_key_identifier, "hash") ||
      !add(leaf.get(), root, NID_authority_key_identifier, "keyid:always") ||
      !add(leaf.get(), leaf_san(id.text(), deviation)) ||
      X509_sign(leaf.get(), state_->key.get(), signature_digest(state_->key.get())) <= 0)
    return fault(what, openssl_reason());

  Issued issued{to_pem(leaf.get()),     serial_hex(leaf.get()), deviation.uri.value_or(id.text()),
                rfc3339(validity.from), rfc3339(validity.to),   key_type_text(key)};
  if (issued.chain_pem.empty()) return fault(what, openssl_reason());
  return issued;
}

}  // namespace fsbl
