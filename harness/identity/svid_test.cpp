// SVIDs: what the authority issues is accepted, and every deviation from the rules is refused by name.
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <filesystem>
#include <functional>

#include "harness/core/file.h"
#include "harness/identity/internal.h"

namespace fsbl {
namespace {

using namespace identity;

constexpr Nanos kTtl = 300'000'000'000;
const SpiffeId kServer{"fsbl.test", "/worker/server"};

SvidAuthority authority() {
  return SvidAuthority::create("fsbl.test").value();
}

struct Leaf {
  KeyPair keys;
  Issued issued;
  std::vector<std::string> der() const { return pem_chain_to_der(issued.chain_pem).value(); }
};

Leaf make_leaf(const SvidAuthority& ca, const Deviation& deviation = {}, KeyType type = KeyType::p256) {
  KeyPair keys = make_key_and_csr(type, kServer).value();
  Issued issued = ca.issue(keys.csr_pem, kServer, kTtl, deviation).value();
  return {std::move(keys), std::move(issued)};
}

std::string why(const Expected<PeerIdentity>& result) {
  return result ? "accepted" : result.error().why;
}

std::string refusal(const SvidAuthority& ca, const Deviation& deviation) {
  return why(validate_svid(make_leaf(ca, deviation).der(), ca.bundle_pem(), "fsbl.test", kServer.text()));
}

X509Ptr first(const std::string& pem) {
  return X509Ptr(X509_dup(sk_X509_value(parse_pem(pem)->get(), 0)));
}

PkeyPtr private_key(const std::string& pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return PkeyPtr(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

std::string pem_of(X509* certificate) {
  BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return bio_text(bio.get());
}

ExtensionPtr extension(int nid, const char* value, X509* issuer = nullptr) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, nullptr, nullptr, nullptr, 0);
  return ExtensionPtr(X509V3_EXT_nconf_nid(nullptr, &context, nid, value));
}

void drop(X509* certificate, int nid) {
  X509_EXTENSION_free(X509_delete_ext(certificate, X509_get_ext_by_NID(certificate, nid, -1)));
}

// A leaf whose issuer is `signer`, which need not be allowed to sign.
std::vector<std::string> signed_by(const SvidAuthority& ca, const Leaf& signer) {
  const X509Ptr leaf = first(make_leaf(ca).issued.chain_pem), issuer = first(signer.issued.chain_pem);
  const PkeyPtr key = private_key(signer.keys.private_pem);
  X509_set_issuer_name(leaf.get(), X509_get_subject_name(issuer.get()));
  drop(leaf.get(), NID_authority_key_identifier);
  X509_add_ext(leaf.get(), extension(NID_authority_key_identifier, "keyid:always", issuer.get()).get(), -1);
  X509_sign(leaf.get(), key.get(), EVP_sha256());
  return pem_chain_to_der(pem_of(leaf.get()) + signer.issued.chain_pem).value();
}

// The rules' verdict on a good leaf after `change`; signatures play no part in them.
std::string rules_after(const std::function<void(X509*)>& change) {
  const Leaf good = make_leaf(authority());
  const X509Ptr leaf = first(good.issued.chain_pem);
  change(leaf.get());
  X509_sign(leaf.get(), private_key(good.keys.private_pem).get(), EVP_sha256());
  const auto id = check_svid_rules(pem_of(leaf.get()));
  return id ? "accepted" : id.error().why;
}

TEST(Authority, IssuesWhatTheValidatorAccepts) {
  for (const KeyType root : {KeyType::p256, KeyType::ed25519})
    for (const KeyType type : {KeyType::p256, KeyType::ed25519}) {
      const auto ca = SvidAuthority::create("fsbl.test", root).value();
      const Leaf leaf = make_leaf(ca, {}, type);
      const auto peer = validate_svid(leaf.der(), ca.bundle_pem(), "fsbl.test", kServer.text());
      ASSERT_TRUE(peer) << peer.error().message();
      EXPECT_EQ(peer->spiffe_id, "spiffe://fsbl.test/worker/server");
      EXPECT_EQ(peer->serial_hex, leaf.issued.serial_hex);
      EXPECT_EQ(peer->serial_hex.size(), 32u);
      EXPECT_EQ(peer->key_type, type == KeyType::p256 ? "p256" : "ed25519");
      EXPECT_EQ(peer->key_type, leaf.issued.key_type);
      EXPECT_TRUE(validate_svid(leaf.der(), ca.bundle_pem(), "fsbl.test", ""));
      EXPECT_EQ(check_svid_rules(leaf.issued.chain_pem).value(), kServer);
    }
}

TEST(Authority, SerialsDiffer) {
  const auto ca = authority();
  EXPECT_NE(make_leaf(ca).issued.serial_hex, make_leaf(ca).issued.serial_hex);
}

TEST(Authority, CertificatesHaveTheStatedForm) {
  const auto ca = authority();
  const X509Ptr root = first(ca.bundle_pem()), leaf = first(make_leaf(ca).issued.chain_pem);
  EXPECT_EQ(X509_check_ca(root.get()), 1);
  EXPECT_EQ(X509_get_key_usage(root.get()), uint32_t{KU_KEY_CERT_SIGN | KU_CRL_SIGN});
  EXPECT_EQ(X509_get_key_usage(leaf.get()), uint32_t{KU_DIGITAL_SIGNATURE});
  EXPECT_EQ(X509_get_extended_key_usage(leaf.get()), uint32_t{XKU_SSL_CLIENT | XKU_SSL_SERVER});
  EXPECT_EQ(X509_NAME_entry_count(X509_get_subject_name(leaf.get())), 0);
  EXPECT_TRUE(X509_get0_subject_key_id(leaf.get()));
  EXPECT_EQ(
      ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(leaf.get()), X509_get0_subject_key_id(root.get())), 0);
  EXPECT_EQ(X509_get_signature_nid(leaf.get()), NID_ecdsa_with_SHA256);
  int days = -1, seconds = -1;
  ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(leaf.get()), X509_get0_notAfter(leaf.get()));
  EXPECT_EQ(days, 0);
  EXPECT_EQ(seconds, 300 + 60);
  EXPECT_EQ(check_svid_rules(ca.bundle_pem()).error().why, "CA certificate used as leaf");
}

TEST(Authority, RefusesRequestsThatAskForSomethingElse) {
  const auto ca = authority();
  const KeyPair keys = make_key_and_csr(KeyType::p256, kServer).value();
  const SpiffeId other{"fsbl.test", "/worker/client"}, foreign{"other.test", "/worker/server"};
  EXPECT_FALSE(ca.issue(keys.csr_pem, other, kTtl));
  EXPECT_FALSE(ca.issue(make_key_and_csr(KeyType::p256, foreign)->csr_pem, foreign, kTtl));
  EXPECT_FALSE(ca.issue(keys.csr_pem, kServer, 0));
  EXPECT_FALSE(ca.issue(keys.csr_pem, kServer, Nanos{31 * 24 * 3600} * 1'000'000'000));
  EXPECT_FALSE(ca.issue("", kServer, kTtl));
  EXPECT_FALSE(ca.issue("nonsense", kServer, kTtl));
  // A request whose signature was made with another key.
  std::string damaged = keys.csr_pem;
  char& last = damaged[damaged.find("-----END") - 8];
  last = last == 'A' ? 'B' : 'A';
  EXPECT_FALSE(ca.issue(damaged, kServer, kTtl));
  EXPECT_FALSE(
      ca.issue(make_key_and_csr(KeyType::p256, {"fsbl.test", ""})->csr_pem, {"fsbl.test", ""}, kTtl));
  EXPECT_FALSE(SvidAuthority::create("Not A Domain"));
  EXPECT_FALSE(SvidAuthority::create("td/path"));
  EXPECT_FALSE(make_key_and_csr(KeyType::p256, {"td", "/a,URI:spiffe://td/b"}));
}

TEST(Authority, PrivateKeysStayWithTheirOwner) {
  const auto ca = authority();
  Leaf leaf = make_leaf(ca);
  auto error = ca.issue(leaf.keys.csr_pem, {"fsbl.test", "/other"}, kTtl);
  std::string seen = leaf.keys.csr_pem + leaf.issued.chain_pem + leaf.issued.serial_hex + ca.bundle_pem() +
                     error.error().message();
  size_t lines = 0;
  for (size_t at = leaf.keys.private_pem.find('\n') + 1; leaf.keys.private_pem[at] != '-'; ++lines) {
    const size_t end = leaf.keys.private_pem.find('\n', at);
    EXPECT_EQ(seen.find(leaf.keys.private_pem.substr(at, end - at)), seen.npos);
    at = end + 1;
  }
  EXPECT_GE(lines, 2u);
  EXPECT_EQ(seen.find("PRIVATE"), seen.npos);
  const char* memory = leaf.keys.private_pem.data();
  wipe(leaf.keys.private_pem);
  EXPECT_TRUE(leaf.keys.private_pem.empty());
  EXPECT_EQ(memory, leaf.keys.private_pem.data());
  for (size_t i = 0; i < leaf.keys.private_pem.capacity(); ++i) ASSERT_EQ(memory[i], 0);
}

TEST(Validator, NamesEachDeviation) {
  const auto ca = authority();
  EXPECT_EQ(refusal(ca, {}), "accepted");
  EXPECT_EQ(refusal(ca, {.expired = true}), "expired");
  EXPECT_EQ(refusal(ca, {.not_yet_valid = true}), "not yet valid");
  EXPECT_EQ(refusal(ca, {.ca_true = true}), "CA certificate used as leaf");
  EXPECT_EQ(refusal(ca, {.cert_sign = true}), "keyCertSign on leaf");
  EXPECT_EQ(refusal(ca, {.crl_sign = true}), "cRLSign on leaf");
  EXPECT_EQ(refusal(ca, {.no_digital_signature = true}), "digitalSignature missing");
  EXPECT_EQ(refusal(ca, {.no_uri_san = true}), "no URI SAN");
  EXPECT_EQ(refusal(ca, {.two_uri_sans = true}), "two URI SANs");
  EXPECT_EQ(refusal(ca, {.server_auth_only = true}), "extended key usage lacks clientAuth");
  EXPECT_EQ(refusal(ca, {.uri = "spiffe://other.test/worker/server"}), "wrong trust domain");
  EXPECT_EQ(refusal(ca, {.uri = "spiffe://fsbl.test/worker/client"}), "wrong peer id");
  EXPECT_EQ(refusal(ca, {.uri = "spiffe://fsbl.test/worker/server2"}), "wrong peer id");
  EXPECT_EQ(refusal(ca, {.uri = "spiffe://fsbl.test"}), "no path in SPIFFE id");
  EXPECT_EQ(refusal(ca, {.uri = "https://fsbl.test/x"}),
            "URI SAN is no SPIFFE id: does not start with spiffe://");
  EXPECT_EQ(refusal(ca, {.uri = std::string("spiffe://fsbl.test/worker/server\0x", 34)}),
            "URI SAN is no SPIFFE id: path has a character outside [A-Za-z0-9._-]");
}

TEST(Validator, NamesRulesThatNoDeviationBreaks) {
  EXPECT_EQ(rules_after([](X509*) {}), "accepted");
  EXPECT_EQ(rules_after([](X509* leaf) { drop(leaf, NID_ext_key_usage); }), "accepted");
  EXPECT_EQ(rules_after([](X509* leaf) { drop(leaf, NID_basic_constraints); }), "accepted");
  EXPECT_EQ(rules_after([](X509* leaf) { drop(leaf, NID_key_usage); }), "key usage missing");
  EXPECT_EQ(rules_after([](X509* leaf) {
              drop(leaf, NID_key_usage);
              X509_add_ext(leaf, extension(NID_key_usage, "digitalSignature").get(), -1);
            }),
            "key usage not critical");
  EXPECT_EQ(rules_after([](X509* leaf) {
              drop(leaf, NID_ext_key_usage);
              X509_add_ext(leaf, extension(NID_ext_key_usage, "clientAuth").get(), -1);
            }),
            "extended key usage lacks serverAuth");
  EXPECT_EQ(rules_after([](X509* leaf) { drop(leaf, NID_subject_alt_name); }), "no URI SAN");
  const auto with_san = [](Critical critical) {
    return [critical](X509* leaf) {
      drop(leaf, NID_subject_alt_name);
      X509_add_ext(leaf, uri_san({kServer.text()}, "server.fsbl.test", critical).get(), -1);
    };
  };
  EXPECT_EQ(rules_after(with_san(Critical::yes)), "accepted");  // DNS names beside the id are allowed
  EXPECT_EQ(rules_after(with_san(Critical::no)), "SAN not critical though the subject is empty");
  EXPECT_EQ(rules_after([](X509* leaf) {
              X509_add_ext(leaf, uri_san({"spiffe://fsbl.test/second"}, {}, Critical::yes).get(), -1);
            }),
            "malformed certificate: invalid extensions");  // the SAN extension twice
  EXPECT_EQ(rules_after([](X509* leaf) { X509_set_version(leaf, X509_VERSION_1); }),
            "malformed certificate: not version 3");
}

TEST(Validator, ForeignAuthorityOfTheSameNameIsNotTrusted) {
  const auto ca = authority(), impostor = authority();
  const auto result = validate_svid(make_leaf(impostor).der(), ca.bundle_pem(), "fsbl.test", "");
  EXPECT_EQ(why(result), "untrusted chain: unable to get local issuer certificate");
  // Nor does sending the impostor's root along help.
  auto chain = make_leaf(impostor).der();
  chain.push_back(pem_chain_to_der(impostor.bundle_pem())->front());
  EXPECT_EQ(why(validate_svid(chain, ca.bundle_pem(), "fsbl.test", "")),
            "untrusted chain: self-signed certificate in certificate chain");
  // A bundle with both roots trusts both.
  EXPECT_TRUE(
      validate_svid(make_leaf(impostor).der(), ca.bundle_pem() + impostor.bundle_pem(), "fsbl.test", ""));
}

TEST(Validator, IntermediatesMustBeSigningCertificates) {
  const auto ca = authority();
  const auto check = [&](const Deviation& deviation) {
    return why(
        validate_svid(signed_by(ca, make_leaf(ca, deviation)), ca.bundle_pem(), "fsbl.test", kServer.text()));
  };
  EXPECT_EQ(check({.ca_true = true, .cert_sign = true, .uri = "spiffe://fsbl.test"}), "accepted");
  EXPECT_EQ(check({.ca_true = true, .cert_sign = true}), "path in signing certificate's SPIFFE id");
  EXPECT_EQ(check({.cert_sign = true, .uri = "spiffe://fsbl.test"}).substr(0, 17), "untrusted chain: ");
  EXPECT_EQ(check({.ca_true = true, .uri = "spiffe://fsbl.test"}).substr(0, 17), "untrusted chain: ");
  EXPECT_EQ(check({.expired = true, .ca_true = true, .cert_sign = true, .uri = "spiffe://fsbl.test"}),
            "untrusted chain: certificate has expired");
  // An ordinary SVID used as an authority: what a stolen leaf key must not be good for.
  EXPECT_EQ(check({}).substr(0, 17), "untrusted chain: ");
}

TEST(Validator, EveryChangedByteIsRefused) {
  const auto ca = authority();
  const auto validator = SvidValidator::create(ca.bundle_pem(), "fsbl.test", kServer.text()).value();
  const std::string good = make_leaf(ca).der().front();
  ASSERT_TRUE(validator.check({good}));
  for (size_t i = 0; i < good.size(); ++i)
    for (const int flip : {0x01, 0x80}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      ASSERT_FALSE(validator.check({bad})) << "byte " << i;
    }
}

TEST(Validator, BoundsWhatPeersPresent) {
  const auto ca = authority();
  const auto validator = SvidValidator::create(ca.bundle_pem(), "fsbl.test", "").value();
  const std::string good = make_leaf(ca).der().front();
  ERR_clear_error();
  EXPECT_EQ(why(validator.check(std::vector<std::string>{})), "no certificate");
  EXPECT_EQ(why(validator.check(nullptr, nullptr)), "no certificate");
  EXPECT_EQ(why(validator.check({""})).substr(0, 21), "malformed certificate");
  EXPECT_EQ(why(validator.check({good.substr(0, good.size() / 2)})).substr(0, 21), "malformed certificate");
  EXPECT_EQ(why(validator.check({good + "x"})), "malformed certificate: trailing bytes");
  EXPECT_EQ(why(validator.check({std::string(1 << 20, '\x30')})), "malformed certificate: too long");
  EXPECT_EQ(why(validator.check(std::vector<std::string>(9, good))), "chain too long");
  EXPECT_TRUE(validator.check(std::vector<std::string>(8, good)));
  EXPECT_EQ(ERR_peek_error(), 0u);  // nothing left for SSL_get_error() to stumble over
}

TEST(Validator, TakesOpensslObjectsAsTheHandshakeHasThem) {
  const auto ca = authority();
  const auto validator = SvidValidator::create(ca.bundle_pem(), "fsbl.test", kServer.text()).value();
  const auto chain = parse_pem(make_leaf(ca).issued.chain_pem).value();
  X509* leaf = sk_X509_value(chain.get(), 0);
  EXPECT_TRUE(validator.check(leaf, nullptr));
  EXPECT_TRUE(validator.check(leaf, chain.get()));
}

TEST(Validator, BundleMustHoldSigningCertificates) {
  const auto ca = authority();
  EXPECT_FALSE(SvidValidator::create("", "fsbl.test", ""));
  EXPECT_FALSE(SvidValidator::create("no PEM", "fsbl.test", ""));
  EXPECT_FALSE(SvidValidator::create(make_leaf(ca).issued.chain_pem, "fsbl.test", ""));
  EXPECT_FALSE(
      SvidValidator::create(ca.bundle_pem() + "-----BEGIN CERTIFICATE-----\nMIIB\n", "fsbl.test", ""));
  EXPECT_FALSE(SvidValidator::create(ca.bundle_pem(), "Bad Domain", ""));
  EXPECT_FALSE(SvidValidator::create(ca.bundle_pem(), "fsbl.test", "spiffe://other.test/x"));
  EXPECT_FALSE(SvidValidator::create(ca.bundle_pem(), "fsbl.test", "worker"));
}

// Published certificates, good and bad; shipped beside the source tree where at all.
TEST(ForeignFiles, AreJudgedByTheRules) {
  const auto folder = std::filesystem::path(FSBL_SOURCE_DIR) / "../shared/specs/svid";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder << " on this host";
  const std::pair<const char*, const char*> cases[] = {
      {"good-leaf-only.pem", "accepted"},
      {"good-leaf-and-intermediate.pem", "accepted"},
      {"corrupt-cert.pem", "malformed certificate"},
      {"not-pem", "no certificate"},
      {"wrong-intermediate-no-ca.pem", "signing certificate is no CA"},
      {"wrong-leaf-ca-true.pem", "CA certificate used as leaf"},
      {"wrong-leaf-cert-sign.pem", "keyCertSign on leaf"},
      {"wrong-leaf-crl-sign.pem", "cRLSign on leaf"},
      {"wrong-leaf-empty-id.pem", "no URI SAN"},
      {"wrong-leaf-no-digital-signature.pem", "keyCertSign on leaf"},
  };
  for (const auto& [name, verdict] : cases) {
    const auto pem = read_file(folder / name);
    ASSERT_TRUE(pem) << pem.error().message();
    const auto id = check_svid_rules(*pem);
    const std::string got = id ? "accepted" : id.error().why;
    EXPECT_EQ(got.substr(0, std::string(verdict).size()), verdict) << name;
  }
}

}  // namespace
}  // namespace fsbl
