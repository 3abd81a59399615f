#include <openssl/pem.h>

#include "harness/identity/internal.h"

namespace fsbl {
namespace identity {

std::string serial_hex(const X509* certificate) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
  const unsigned char* bytes = ASN1_STRING_get0_data(serial);
  std::string hex = ASN1_STRING_type(serial) == V_ASN1_NEG_INTEGER ? "-" : "";
  for (int i = 0; i < ASN1_STRING_length(serial); ++i) {
    hex += kDigits[bytes[i] >> 4];
    hex += kDigits[bytes[i] & 15];
  }
  return hex;
}

Rule<X509Ptr> parse_der(std::string_view der) {
  if (der.size() > kMaxCertificateBytes)
    return tl::unexpected<std::string>("malformed certificate: too long");
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const auto* end = at + der.size();
  X509Ptr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (!certificate) return tl::unexpected("malformed certificate: " + openssl_reason());
  if (at != end) return tl::unexpected<std::string>("malformed certificate: trailing bytes");
  return certificate;
}

Rule<X509StackPtr> parse_pem(std::string_view pem) {
  if (pem.empty()) return tl::unexpected<std::string>("no certificate");
  if (pem.size() > kMaxPemBytes) return tl::unexpected<std::string>("malformed certificate: too long");
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509StackPtr chain(sk_X509_new_null());
  if (!bio || !chain) return tl::unexpected(openssl_reason());
  while (X509Ptr certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (sk_X509_push(chain.get(), certificate.get()) <= 0) return tl::unexpected(openssl_reason());
    (void)certificate.release();
  }
  // The text ends where no further block starts; anything else is a damaged block.
  const unsigned long last = ERR_peek_last_error();
  if (ERR_GET_LIB(last) != ERR_LIB_PEM || ERR_GET_REASON(last) != PEM_R_NO_START_LINE)
    return tl::unexpected("malformed certificate: " + openssl_reason());
  if (sk_X509_num(chain.get()) == 0) return tl::unexpected<std::string>("no certificate");
  return chain;
}

Rule<std::vector<std::string>> uris(const GENERAL_NAMES* names) {
  std::vector<std::string> found;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
    if (type != GEN_URI) continue;
    const auto* text = static_cast<const ASN1_IA5STRING*>(value);
    // With its length: a NUL inside must not end the name early.
    found.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                       static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return found;
}

}  // namespace identity

using namespace identity;

namespace {

tl::unexpected<std::string> broken(std::string rule) {
  return tl::unexpected(std::move(rule));
}

bool critical(const X509* certificate, int nid) {
  const int at = X509_get_ext_by_NID(certificate, nid, -1);
  return at >= 0 && X509_EXTENSION_get_critical(X509_get_ext(certificate, at)) == 1;
}

// X.509 version 3 with extensions that parse and appear once each; the flags are cached in the certificate.
Rule<uint32_t> extension_flags(X509* certificate) {
  const uint32_t flags = X509_get_extension_flags(certificate);
  if (flags & EXFLAG_INVALID) return broken("malformed certificate: invalid extensions");
  if (X509_get_version(certificate) != X509_VERSION_3) return broken("malformed certificate: not version 3");
  return flags;
}

Rule<std::vector<std::string>> uri_sans(const X509* certificate) {
  GeneralNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  return uris(names.get());
}

Rule<> check_leaf_usage(X509* leaf, uint32_t flags) {
  if (flags & EXFLAG_CA) return broken("CA certificate used as leaf");
  if (!(flags & EXFLAG_KUSAGE)) return broken("key usage missing");
  if (!critical(leaf, NID_key_usage)) return broken("key usage not critical");
  const uint32_t usage = X509_get_key_usage(leaf);
  if (usage & KU_KEY_CERT_SIGN) return broken("keyCertSign on leaf");
  if (usage & KU_CRL_SIGN) return broken("cRLSign on leaf");
  if (!(usage & KU_DIGITAL_SIGNATURE)) return broken("digitalSignature missing");
  if (flags & EXFLAG_XKUSAGE) {
    const uint32_t extended = X509_get_extended_key_usage(leaf);
    if (!(extended & XKU_SSL_CLIENT)) return broken("extended key usage lacks clientAuth");
    if (!(extended & XKU_SSL_SERVER)) return broken("extended key usage lacks serverAuth");
  }
  return {};
}

Rule<SpiffeId> check_leaf(X509* leaf) {
  const auto flags = extension_flags(leaf);
  if (!flags) return broken(flags.error());
  if (const auto usage = check_leaf_usage(leaf, *flags); !usage) return broken(usage.error());
  const auto names = uri_sans(leaf);
  if (!names) return broken(names.error());
  if (names->empty()) return broken("no URI SAN");
  if (names->size() > 1) return broken("two URI SANs");
  if (X509_NAME_entry_count(X509_get_subject_name(leaf)) == 0 && !critical(leaf, NID_subject_alt_name))
    return broken("SAN not critical though the subject is empty");
  const auto id = parse_spiffe_id(names->front());
  if (!id) return broken("URI SAN is no SPIFFE id: " + id.error().why);
  if (id->path.empty()) return broken("no path in SPIFFE id");
  return *id;
}

// Intermediates and roots. An id is optional here (SPIFFE X.509-SVID, 4.1 and 5.2), but must not have a path.
Rule<> check_signer(X509* signer) {
  const auto flags = extension_flags(signer);
  if (!flags) return broken(flags.error());
  if (!(*flags & EXFLAG_CA)) return broken("signing certificate is no CA");
  if (!(*flags & EXFLAG_KUSAGE) || !(X509_get_key_usage(signer) & KU_KEY_CERT_SIGN))
    return broken("signing certificate lacks keyCertSign");
  const auto names = uri_sans(signer);
  if (!names) return broken(names.error());
  if (names->size() > 1) return broken("two URI SANs on signing certificate");
  if (names->empty()) return {};
  const auto id = parse_spiffe_id(names->front());
  if (!id) return broken("signing certificate's URI SAN is no SPIFFE id: " + id.error().why);
  if (!id->path.empty()) return broken("path in signing certificate's SPIFFE id");
  return {};
}

std::string verify_reason(const X509_STORE_CTX* context) {
  const int error = X509_STORE_CTX_get_error(context);
  if (X509_STORE_CTX_get_error_depth(context) == 0) {
    if (error == X509_V_ERR_CERT_HAS_EXPIRED) return "expired";
    if (error == X509_V_ERR_CERT_NOT_YET_VALID) return "not yet valid";
  }
  return std::string("untrusted chain: ") + X509_verify_cert_error_string(error);
}

// Usages are checked by the rules above, so OpenSSL gets "any purpose". Trust is in `roots` alone: no store,
// no lock.
Rule<> check_chain(X509* leaf, STACK_OF(X509) * presented, STACK_OF(X509) * roots) {
  StoreCtxPtr context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), nullptr, leaf, presented) != 1)
    return broken("untrusted chain: " + openssl_reason());
  X509_STORE_CTX_set0_trusted_stack(context.get(), roots);
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_depth(parameters, kMaxChain);
  X509_VERIFY_PARAM_set_auth_level(parameters, 2);  // 112 bits: no SHA-1, no RSA below 2048
  if (X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_ANY) != 1)
    return broken("untrusted chain: " + openssl_reason());
  if (X509_verify_cert(context.get()) != 1) return broken(verify_reason(context.get()));
  STACK_OF(X509)* built = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 1; i < sk_X509_num(built); ++i)
    if (const auto rule = check_signer(sk_X509_value(built, i)); !rule) return broken(rule.error());
  return {};
}

Rule<X509StackPtr> parse_chain(const std::vector<std::string>& chain_der) {
  if (chain_der.empty()) return broken("no certificate");
  if (chain_der.size() > kMaxChain) return broken("chain too long");
  X509StackPtr chain(sk_X509_new_null());
  for (const auto& der : chain_der) {
    auto certificate = parse_der(der);
    if (!certificate) return broken(certificate.error());
    if (!chain || sk_X509_push(chain.get(), certificate->get()) <= 0) return broken(openssl_reason());
    (void)certificate->release();
  }
  return chain;
}

}  // namespace

struct SvidValidator::State {
  X509StackPtr roots;
  std::string trust_domain, expected_id;

  Rule<PeerIdentity> check(X509* leaf, STACK_OF(X509) * presented) const {
    if (!leaf) return broken("no certificate");
    if (presented && sk_X509_num(presented) > static_cast<int>(kMaxChain)) return broken("chain too long");
    const auto id = check_leaf(leaf);
    if (!id) return broken(id.error());
    // The bundle is that of our trust domain; another domain's id must not be held against it at all.
    if (id->trust_domain != trust_domain) return broken("wrong trust domain");
    if (const auto chain = check_chain(leaf, presented, roots.get()); !chain) return broken(chain.error());
    std::string text = id->text();
    if (!expected_id.empty() && text != expected_id) return broken("wrong peer id");
    return PeerIdentity{std::move(text), serial_hex(leaf), key_type_text(X509_get0_pubkey(leaf))};
  }
};

namespace {

Expected<PeerIdentity> for_peer(Rule<PeerIdentity> result) {
  return std::move(result).map_error([](std::string rule) {
    return Error{ErrorKind::fault, "validate peer's SVID", std::move(rule), {}};
  });
}

}  // namespace

SvidValidator::SvidValidator(std::unique_ptr<State> state) : state_(std::move(state)) {}
SvidValidator::SvidValidator(SvidValidator&&) noexcept = default;
SvidValidator& SvidValidator::operator=(SvidValidator&&) noexcept = default;
SvidValidator::~SvidValidator() = default;

Expected<SvidValidator> SvidValidator::create(std::string_view bundle_pem, std::string_view trust_domain,
                                              std::string_view expected_id) {
  const OpensslErrorScope errors;
  const std::string what = "read trust bundle";
  auto roots = parse_pem(bundle_pem);
  if (!roots) return bad_input(what, roots.error());
  for (int i = 0; i < sk_X509_num(roots->get()); ++i)
    if (const auto rule = check_signer(sk_X509_value(roots->get(), i)); !rule)
      return bad_input(what, rule.error());
  FSBL_ASSIGN(const SpiffeId domain, parse_spiffe_id("spiffe://" + std::string(trust_domain)));
  if (domain.trust_domain != trust_domain) return bad_input(what, "trust domain has a path");
  if (!expected_id.empty()) {
    FSBL_ASSIGN(const SpiffeId expected, parse_spiffe_id(expected_id));
    if (expected.trust_domain != trust_domain)
      return bad_input(what, "expected peer id is of another trust domain");
  }
  return SvidValidator(
      std::make_unique<State>(State{std::move(*roots), std::string(trust_domain), std::string(expected_id)}));
}

Expected<PeerIdentity> SvidValidator::check(x509_st* leaf, stack_st_X509* presented) const {
  const OpensslErrorScope errors;
  return for_peer(state_->check(leaf, presented));
}

Expected<PeerIdentity> SvidValidator::check(const std::vector<std::string>& chain_der) const {
  const OpensslErrorScope errors;
  const auto chain = parse_chain(chain_der);
  if (!chain) return for_peer(broken(chain.error()));
  return for_peer(state_->check(sk_X509_value(chain->get(), 0), chain->get()));
}

Expected<PeerIdentity> validate_svid(const std::vector<std::string>& chain_der, std::string_view bundle_pem,
                                     std::string_view trust_domain, std::string_view expected_id) {
  FSBL_ASSIGN(const SvidValidator validator, SvidValidator::create(bundle_pem, trust_domain, expected_id));
  return validator.check(chain_der);
}

Expected<SpiffeId> check_svid_rules(std::string_view chain_pem) {
  const OpensslErrorScope errors;
  const std::string what = "check SVID";
  const auto chain = parse_pem(chain_pem);
  if (!chain) return bad_input(what, chain.error());
  if (sk_X509_num(chain->get()) > static_cast<int>(kMaxChain)) return bad_input(what, "chain too long");
  const auto id = check_leaf(sk_X509_value(chain->get(), 0));
  if (!id) return bad_input(what, id.error());
  for (int i = 1; i < sk_X509_num(chain->get()); ++i)
    if (const auto rule = check_signer(sk_X509_value(chain->get(), i)); !rule)
      return bad_input(what, rule.error());
  return *id;
}

Expected<std::vector<std::string>> pem_chain_to_der(std::string_view chain_pem) {
  const OpensslErrorScope errors;
  const std::string what = "read certificate chain";
  const auto chain = parse_pem(chain_pem);
  if (!chain) return bad_input(what, chain.error());
  std::vector<std::string> der;
  for (int i = 0; i < sk_X509_num(chain->get()); ++i) {
    unsigned char* bytes = nullptr;
    const int size = i2d_X509(sk_X509_value(chain->get(), i), &bytes);
    if (size <= 0) return fault(what, openssl_reason());
    der.emplace_back(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
    OPENSSL_free(bytes);
  }
  return der;
}

}  // namespace fsbl
