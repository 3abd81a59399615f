// X.509-SVIDs: making and checking identities (SPIFFE X.509-SVID standard; SPIFFE-ID standard; RFC 5280).
// OpenSSL types appear only as forward declarations. PEM text throughout. Thread-safe: no shared state.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/scenario/model.h"

struct x509_st;        // OpenSSL's X509
struct stack_st_X509;  // and STACK_OF(X509)

namespace fsbl {

// --- SPIFFE IDs ---
struct SpiffeId {
  std::string trust_domain;  // "fsbl.test"
  std::string path;          // "/worker/client", or empty for a trust domain's own id
  std::string text() const { return "spiffe://" + trust_domain + path; }
  bool operator==(const SpiffeId&) const = default;
};
// Exact syntax of the SPIFFE-ID standard; the error names the rule that was broken.
Expected<SpiffeId> parse_spiffe_id(std::string_view text);

// --- keys and requests (made by each side for itself) ---
struct KeyPair {
  std::string private_pem;  // PKCS#8; a secret: memory only
  std::string csr_pem;      // PKCS#10, one URI SAN with the id asked for
};
Expected<KeyPair> make_key_and_csr(KeyType type, const SpiffeId& id);
// Overwrites a secret before it is freed.
void wipe(std::string& secret) noexcept;

// --- the authority (lives in the controller, ephemeral, one per run) ---
struct Issued {
  std::string chain_pem;  // leaf first, without the root
  std::string serial_hex, spiffe_id, not_before, not_after, key_type;
};
// How a leaf deviates from a good one; tests and negative probes use it. Default: a good leaf.
struct Deviation {
  bool expired = false, not_yet_valid = false, ca_true = false, cert_sign = false, crl_sign = false,
       no_digital_signature = false, no_uri_san = false, two_uri_sans = false, server_auth_only = false;
  std::optional<std::string> uri;  // this URI instead of the requested one, unchecked
};
class SvidAuthority {
 public:
  // A fresh root for the trust domain: self-signed CA, random serial, keyCertSign, key in memory only.
  static Expected<SvidAuthority> create(std::string_view trust_domain, KeyType type = KeyType::p256);
  // Signs a request for exactly `id` (the CSR's signature and URI are checked first).
  Expected<Issued> issue(std::string_view csr_pem, const SpiffeId& id, Nanos ttl,
                         const Deviation& = {}) const;
  const std::string& bundle_pem() const;  // the root certificate(s)
  const std::string& trust_domain() const;
  SvidAuthority(SvidAuthority&&) noexcept;
  SvidAuthority& operator=(SvidAuthority&&) noexcept;
  ~SvidAuthority();

 private:
  struct State;
  explicit SvidAuthority(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

// --- the validator (in both workers) ---
struct PeerIdentity {
  std::string spiffe_id, serial_hex, key_type;
};
// Checks presented chains against a trust bundle, the SVID rules and the exact peer id. The bundle is parsed
// once: the checks run inside every handshake. `expected_id` empty: any id of the bundle's trust domain. The
// error's `why` names the rule ("expired", "wrong trust domain", "two URI SANs", "CA certificate used as
// leaf", ...).
class SvidValidator {
 public:
  static Expected<SvidValidator> create(std::string_view bundle_pem, std::string_view trust_domain,
                                        std::string_view expected_id);
  Expected<PeerIdentity> check(const std::vector<std::string>& chain_der) const;  // DER, leaf first
  // The same on OpenSSL's own objects (X509*, STACK_OF(X509)*), as SSL_CTX_set_cert_verify_callback() has
  // them: `presented` may hold the leaf too, or be null. Borrows both; leaves OpenSSL's error queue as it
  // was. Sizes are bounded by the TLS stack (SSL_CTX_set_max_cert_list).
  Expected<PeerIdentity> check(x509_st* leaf, stack_st_X509* presented) const;
  SvidValidator(SvidValidator&&) noexcept;
  SvidValidator& operator=(SvidValidator&&) noexcept;
  ~SvidValidator();

 private:
  struct State;
  explicit SvidValidator(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};
// One check with a validator made for it; `chain_der` leaf first.
Expected<PeerIdentity> validate_svid(const std::vector<std::string>& chain_der, std::string_view bundle_pem,
                                     std::string_view trust_domain, std::string_view expected_id);
// The SVID rules alone, for one PEM chain without a bundle (used on foreign files).
Expected<SpiffeId> check_svid_rules(std::string_view chain_pem);
Expected<std::vector<std::string>> pem_chain_to_der(std::string_view chain_pem);

}  // namespace fsbl
