// Every wrong identity is refused by the side that is shown it, with the reason, and the other side learns that it was
// refused, however late: nobody counts the flow as established.
#include "transports/contract_round.h"
#include "transports/contract_text.h"
#include "transports/tls/raw_peer_for_test.h"

namespace fsbl::contract {
namespace {

struct Wrong {
  const char* kind;    // of the certificate (harness/identity/deviation.h)
  const char* reason;  // by which it is refused
};
constexpr Wrong kWrong[] = {
    {"none", "peer did not return a certificate"},
    {"expired", "expired"},
    {"not-yet-valid", "not yet valid"},
    {"wrong-trust-domain", "wrong trust domain"},
    {"wrong-id", "wrong peer id"},
    {"no-uri-san", "no URI SAN"},
    {"two-uri-sans", "two URI SANs"},
    {"ca-as-leaf", "CA certificate used as leaf"},
    {"cert-sign", "keyCertSign on leaf"},
    {"no-digital-signature", "digitalSignature missing"},
    {"server-auth-only", "extended key usage lacks clientAuth"},
};

struct Case {
  std::string engine;
  Role bad;
  Wrong wrong;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.engine; }

std::vector<Case> cases(std::initializer_list<Role> roles) {
  std::vector<Case> all;
  for (const EngineDescriptor* engine : engines())
    for (Role bad : roles)
      for (const Wrong& wrong : kWrong)
        if (bad == Role::client || std::string_view(wrong.kind) != "none") all.push_back({std::string(engine->name), bad, wrong});
  return all;
}
std::string case_name(const testing::TestParamInfo<Case>& info) {
  return test_name(info.param.engine + '_' + std::string(to_text(info.param.bad)) + '_' + info.param.wrong.kind);
}

class TlsRefusal : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config.transport = {"tls", "none", "tls", GetParam().engine};
    if (const std::string why = why_not(config.transport); !why.empty()) GTEST_SKIP() << why;
    (GetParam().bad == Role::client ? config.tls.client_svid : config.tls.server_svid) = GetParam().wrong.kind;
  }
  CellConfig config;
};

TEST_P(TlsRefusal, IsCountedByBothSides) {
  config.load.streams = 3;
  LoadRound round(config);
  round.connect();
  EXPECT_EQ(round.connected.established, 0u) << round.connected.handshakes.size();
  EXPECT_EQ(round.accepted.established, 0u);
  EXPECT_TRUE(round.connected.handshakes.empty());
  EXPECT_TRUE(round.accepted.handshakes.empty());
  const bool client_is_bad = GetParam().bad == Role::client;
  const ConnectOutcome& refusing = client_is_bad ? round.accepted : round.connected;
  const ConnectOutcome& refused = client_is_bad ? round.connected : round.accepted;
  EXPECT_EQ(refusing.failures, std::vector<std::string>());
  EXPECT_EQ(refused.failures, std::vector<std::string>());
  ASSERT_EQ(refusing.refusals.size(), 3u);
  ASSERT_EQ(refused.refusals.size(), 3u);
  for (const Json& refusal : refusing.refusals) {
    EXPECT_EQ(refusal["by"], "us");
    EXPECT_EQ(refusal["side"], client_is_bad ? "server" : "client");
    EXPECT_EQ(refusal["reason"], GetParam().wrong.reason);
  }
  for (const Json& refusal : refused.refusals) {
    EXPECT_EQ(refusal["by"], "peer");
    EXPECT_EQ(refusal["side"], client_is_bad ? "client" : "server");
    EXPECT_NE(refusal["reason"].get<std::string>().find("alert from the peer: "), std::string::npos) << refusal;
  }
}

class TlsLateRefusal : public TlsRefusal {};
TEST_P(TlsLateRefusal, ReachesTheClientAfterItsOwnHandshake) {
  Pair pair(config, "127.0.0.1");
  ASSERT_TRUE(pair.client.driver().open(1, pair.server.driver().listen(1, 0).value()));
  ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return pair.client[0].error == 1 && pair.server[0].error == 1; }));
  EXPECT_EQ(pair.client[0].established, 1u);  // TLS 1.3: the client's half ends before the server has its certificate
  EXPECT_EQ(pair.server[0].established, 0u);
  EXPECT_EQ(pair.client[0].received.size(), 0u);
  EXPECT_EQ(pair.client.driver().refusal(0)["by"], "peer");
  EXPECT_EQ(pair.server.driver().refusal(0)["by"], "us");
  EXPECT_NE(pair.client.driver().failure(0).find("alert from the peer"), std::string::npos);
  EXPECT_NE(pair.server.driver().failure(0).find(GetParam().wrong.reason), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, TlsRefusal, testing::ValuesIn(cases({Role::client, Role::server})), case_name);
INSTANTIATE_TEST_SUITE_P(All, TlsLateRefusal, testing::ValuesIn(cases({Role::client})), case_name);

class TlsStrangers : public testing::Test {
 protected:
  TlsStrangers() { config.transport = {"mtls", "none", "tls", "openssl"}; }
  CellConfig config;
};

// A client whose certificate another authority signed, for the same id.
TEST_F(TlsStrangers, AForeignAuthorityIsRefused) {
  Pair pair(config, "127.0.0.1");
  const auto foreign = make_secrets(config);
  Json secrets = foreign[0];
  secrets["bundle_pem"] = pair.secrets[0]["bundle_pem"];  // it would accept our server
  pair.client = End(make_driver(config, Role::client, "127.0.0.1", secrets));
  ASSERT_TRUE(pair.client.driver().open(1, pair.server.driver().listen(1, 0).value()));
  ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return pair.client[0].error == 1 && pair.server[0].error == 1; }));
  const Json refusal = pair.server.driver().refusal(0);
  EXPECT_EQ(refusal["by"], "us");
  EXPECT_NE(refusal["reason"].get<std::string>().find("untrusted chain"), std::string::npos) << refusal;
  EXPECT_EQ(pair.client.driver().refusal(0)["by"], "peer");
}

// A server without a certificate can't shake hands at all: its own doing, and the client is told.
TEST_F(TlsStrangers, AServerWithoutCertificateRefusesEverybody) {
  config.tls.server_svid = "none";
  Pair pair(config, "127.0.0.1");
  ASSERT_TRUE(pair.client.driver().open(1, pair.server.driver().listen(1, 0).value()));
  ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return pair.client[0].error == 1 && pair.server[0].error == 1; }));
  EXPECT_EQ(pair.client.established() + pair.server.established(), 0u);
  EXPECT_EQ(pair.server.driver().refusal(0)["by"], "us");
  EXPECT_EQ(pair.client.driver().refusal(0)["by"], "peer");
}

TEST_F(TlsStrangers, NoCommonCipherIsTheServersRefusal) {
  Pair pair(config, "127.0.0.1");
  config.tls.cipher = "TLS_CHACHA20_POLY1305_SHA256";
  pair.client = End(make_driver(config, Role::client, "127.0.0.1", pair.secrets[0]));
  ASSERT_TRUE(pair.client.driver().open(1, pair.server.driver().listen(1, 0).value()));
  ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return pair.client[0].error == 1 && pair.server[0].error == 1; }));
  EXPECT_EQ(pair.server.driver().refusal(0)["by"], "us");
  EXPECT_EQ(pair.server.driver().refusal(0)["reason"], "no shared cipher");
  EXPECT_EQ(pair.client.driver().refusal(0)["by"], "peer");
}

// A peer that hangs up in the middle of a handshake refused nothing that we know of.
TEST_F(TlsStrangers, AHangUpDuringTheHandshakeIsAFailureNotARefusal) {
  Pair pair(config, "127.0.0.1");
  UniqueFd fd = connect_to(pair.server.driver().listen(1, 0).value());
  some_turns({&pair.server});
  fd.reset();
  ASSERT_TRUE(until({&pair.server}, [&] { return pair.server[0].error == 1; }));
  EXPECT_EQ(pair.server.driver().failure(0), "handshake: peer closed the connection");
  EXPECT_TRUE(pair.server.driver().refusal(0).is_null());
}

// No certificate is sent when a session is resumed: the one that it began with is checked again, and a client whose
// SVID ran out meanwhile is refused though its ticket is good for hours.
TEST_F(TlsStrangers, AResumedPeerIsCheckedAgain) {
  config.tls.resumption = true;
  const auto authority = SvidAuthority::create("fsbl.test").value();
  End server(make_driver(config, Role::server, "127.0.0.1", make_secrets(config, authority)[1]));
  config.tls.ttl = 3 * kSecond;
  End client(make_driver(config, Role::client, "127.0.0.1", make_secrets(config, authority)[0]));
  constexpr uint32_t kMost = 10'000;
  const uint16_t port = server.driver().listen(kMost, 0).value();
  const Nanos limit = mono_now_ns() + kHangLimit;
  uint32_t flows = 0, resumed = 0;
  while (server.count([](const FlowLog& log) { return log.error > 0; }) == 0 && flows < kMost && mono_now_ns() < limit) {
    ASSERT_TRUE(client.driver().open(1, port));
    const FlowId id = flows++;
    ASSERT_TRUE(until({&client, &server}, [&] { return server[id].established + server[id].error > 0; }));
    some_turns({&client, &server});  // takes the ticket
    if (server[id].established) resumed += server.driver().report(id).handshake["resumed"].get<bool>();
    if (!server[id].error) continue;
    EXPECT_EQ(server.driver().refusal(id)["reason"], "expired");
    EXPECT_EQ(server.driver().refusal(id)["by"], "us");
    EXPECT_EQ(server[id].established, 0u);
    EXPECT_EQ(client[id].received.size(), 0u);
  }
  EXPECT_GT(resumed, 0u);
  EXPECT_EQ(server.count([](const FlowLog& log) { return log.error > 0; }), 1u) << flows << " flows";
}

}  // namespace
}  // namespace fsbl::contract
