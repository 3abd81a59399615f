// TLS sessions, over every record engine: what was asked for is what was negotiated, resumption is on only when asked
// for, TLS 1.3 only, records are counted, and a peer's KeyUpdate is followed.
#include <set>

#include "transports/contract_text.h"
#include "transports/tls/raw_peer_for_test.h"

namespace fsbl::contract {
namespace {

class TlsHandshake : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    config.transport = {"tls", "none", "tls", GetParam()};
    if (const std::string why = why_not(config.transport); !why.empty()) GTEST_SKIP() << why;
  }
  CellConfig config;
  const Text text;
};

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineDescriptor* engine : engines()) names.emplace_back(engine->name);
  return names;
}

std::string received(End& end, FlowId flow = 0) {
  const auto& bytes = end[flow].received;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_P(TlsHandshake, NegotiatesWhatWasAskedFor) {
  for (const char* cipher : {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
    for (const char* group : {"X25519", "P-256", "P-384"})
      for (KeyType key : {KeyType::p256, KeyType::ed25519}) {
        config.tls.cipher = cipher;
        config.tls.group = group;
        config.tls.key = key;
        Pair pair(config, "127.0.0.1");
        ASSERT_TRUE(pair.connect(1)) << cipher << ' ' << group;
        for (End* end : {&pair.client, &pair.server}) {
          const bool client = end == &pair.client;
          const Json handshake = end->driver().report(0).handshake;
          EXPECT_EQ(handshake["version"], "TLSv1.3");
          EXPECT_EQ(handshake["cipher"], cipher);
          EXPECT_EQ(handshake["group"], group);
          EXPECT_EQ(handshake["signature"], key == KeyType::p256 ? "ecdsa_secp256r1_sha256" : "ed25519");
          EXPECT_EQ(handshake["resumed"], false);
          EXPECT_EQ(handshake["peer_id"], client ? "spiffe://fsbl.test/worker/server" : "spiffe://fsbl.test/worker/client");
          EXPECT_EQ(handshake["side"], client ? "client" : "server");
          EXPECT_EQ(handshake["serial"].get<std::string>().size(), 32u);
        }
      }
}

TEST_P(TlsHandshake, AnUnknownCipherOrGroupIsNamed) {
  const auto secrets = make_secrets(config);
  for (Role role : kRoles) {
    DriverContext context{role, config, "127.0.0.1", "127.0.0.1", secrets[of(role)]};
    context.config.tls.cipher = "TLS_NULL";
    auto driver = find_session("tls")->make_driver(context);
    ASSERT_FALSE(driver);
    EXPECT_NE(driver.error().message().find("TLS_NULL"), std::string::npos) << driver.error().message();
    context.config = config;
    context.config.tls.group = "P-1";
    EXPECT_FALSE(find_session("tls")->make_driver(context));
    context.config = config;
    context.secrets["key_pem"] = "not a key";
    EXPECT_FALSE(find_session("tls")->make_driver(context));
    context.secrets = secrets[of(role)];
    context.secrets["key_pem"] = secrets[1 - of(role)]["key_pem"];  // of another certificate
    EXPECT_FALSE(find_session("tls")->make_driver(context));
  }
  config.transport.engine = "no-such-engine";
  const auto unknown = find_session("tls")->make_driver({Role::client, config, "127.0.0.1", "127.0.0.1", secrets[0]});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::unavailable);
}

// Opens flows one after the other, with an exchange in each, so that every later one could resume.
void open_in_turn(Pair& pair, uint32_t flows) {
  const uint16_t port = pair.server.driver().listen(flows, 0).value();
  for (FlowId id = 0; id < flows; ++id) {
    ASSERT_TRUE(pair.client.driver().open(1, port));
    ASSERT_TRUE(until({&pair.client, &pair.server},
                      [&] { return pair.client.established() == id + 1 && pair.server.established() == id + 1; }));
    ASSERT_NE(pair.server.driver().submit(id, bytes("ready")), Submit::dead);
    ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return received(pair.client, id) == "ready"; }));
  }
}

TEST_P(TlsHandshake, NothingIsResumedWhenResumptionIsOff) {
  Pair pair(config, "127.0.0.1");
  open_in_turn(pair, 4);
  std::set<std::string> keys;
  for (End* end : {&pair.client, &pair.server})
    for (FlowId id = 0; id < 4; ++id) {
      EXPECT_EQ(end->driver().report(id).handshake["resumed"], false);
      EXPECT_EQ(end->driver().report(id).handshake["signature"], "ecdsa_secp256r1_sha256");
    }
}

TEST_P(TlsHandshake, LaterFlowsResumeWhenResumptionIsOnAndThePeerIsStillChecked) {
  config.tls.resumption = true;
  Pair pair(config, "127.0.0.1");
  open_in_turn(pair, 4);
  for (End* end : {&pair.client, &pair.server})
    for (FlowId id = 0; id < 4; ++id) {
      const Json handshake = end->driver().report(id).handshake;
      EXPECT_EQ(handshake["resumed"], id > 0) << id << ' ' << handshake;
      EXPECT_EQ(handshake["peer_id"], end == &pair.client ? "spiffe://fsbl.test/worker/server" : "spiffe://fsbl.test/worker/client");
      EXPECT_EQ(handshake["serial"], end->driver().report(0).handshake["serial"]);
    }
}

TEST_P(TlsHandshake, OneSideAloneCannotResume) {
  for (Role willing : kRoles) {
    config.tls.resumption = false;
    Pair pair(config, "127.0.0.1");
    config.tls.resumption = true;
    (willing == Role::client ? pair.client : pair.server) =
        End(make_driver(config, willing, "127.0.0.1", pair.secrets[of(willing)]));
    open_in_turn(pair, 3);
    for (FlowId id = 0; id < 3; ++id) EXPECT_EQ(pair.client.driver().report(id).handshake["resumed"], false);
  }
}

TEST_P(TlsHandshake, RecordsAreCountedAsRfc8446CutsThem) {
  Pair pair(config, "127.0.0.1");
  ASSERT_TRUE(pair.connect(1));
  some_turns({&pair.client, &pair.server});
  uint64_t expected = 0, sent = 0;
  for (size_t size : {1u, 100u, 16384u, 16385u, 65536u, 65537u, 1000000u}) {
    const uint64_t before = pair.client.driver().report(0).records_out;
    const uint64_t read_before = pair.server.driver().report(0).records_in;
    const uint64_t wire_before = pair.client.driver().wire(0).out;
    const Submit submitted = pair.client.driver().submit(0, text.at(0, Role::client, sent, size));
    ASSERT_NE(submitted, Submit::dead);
    const unsigned sent_events = pair.client[0].sent + (submitted == Submit::pending);
    sent += size;
    ASSERT_TRUE(until({&pair.client, &pair.server},
                      [&] { return pair.server[0].received.size() == sent && pair.client[0].sent == sent_events; }));
    expected = (size + 16383) / 16384;  // 2^14 bytes at most in a record (5.1)
    EXPECT_EQ(pair.client.driver().report(0).records_out - before, expected) << size;
    EXPECT_EQ(pair.server.driver().report(0).records_in - read_before, expected) << size;
    // Header, content type and tag of each (5.2).
    EXPECT_EQ(pair.client.driver().wire(0).out - wire_before, size + expected * (5 + 1 + 16)) << size;
  }
  EXPECT_EQ(pair.server.driver().report(0).records_out, 0u);
}

TEST_P(TlsHandshake, AnOlderClientIsRefused) {
  Pair pair(config, "127.0.0.1");
  const uint16_t port = pair.server.driver().listen(1, 0).value();
  RawPeer old(Role::client, pair.secrets[0], TLS1_2_VERSION);
  old.take(connect_to(port));
  ASSERT_TRUE(until({&pair.server}, [&] { return !old.error().empty() && pair.server[0].error == 1; }, [&] { old.turn(); }));
  EXPECT_EQ(old.error(), "tlsv1 alert protocol version");
  EXPECT_EQ(pair.server.established(), 0u);
  const Json refusal = pair.server.driver().refusal(0);
  EXPECT_EQ(refusal["by"], "us");
  EXPECT_EQ(refusal["reason"], "unsupported protocol");
}

TEST_P(TlsHandshake, AnOlderServerIsRefused) {
  const auto secrets = make_secrets(config);
  Listener listener;
  RawPeer old(Role::server, secrets[1], TLS1_2_VERSION);
  End client(make_driver(config, Role::client, "127.0.0.1", secrets[0]));
  ASSERT_TRUE(client.driver().open(1, listener.port));
  const auto turn = [&] {
    if (!old.connected())
      if (UniqueFd fd = listener.accept()) old.take(std::move(fd));
    old.turn();
  };
  ASSERT_TRUE(until({&client}, [&] { return client[0].error == 1; }, turn));
  EXPECT_EQ(client.established(), 0u);
  EXPECT_FALSE(client.driver().refusal(0).is_null());
}

TEST_P(TlsHandshake, AForeignProtocolIsAnError) {
  Pair pair(config, "127.0.0.1");
  const uint16_t port = pair.server.driver().listen(1, 0).value();
  const UniqueFd fd = connect_to(port);
  const std::string_view request = "GET / HTTP/1.1\r\nHost: fsbl\r\n\r\n";
  ASSERT_EQ(send(fd.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  ASSERT_TRUE(until({&pair.server}, [&] { return pair.server[0].error == 1; }));
  EXPECT_EQ(pair.server.driver().failure(0), "handshake: http request");
}

TEST_P(TlsHandshake, GoesOnAfterThePeersKeyUpdate) {
  for (int kind : {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED}) {
    Pair pair(config, "127.0.0.1");
    const uint16_t port = pair.server.driver().listen(1, 0).value();
    RawPeer raw(Role::client, pair.secrets[0]);
    raw.take(connect_to(port));
    const auto turn = [&] { raw.turn(); };
    ASSERT_TRUE(until({&pair.server}, [&] { return raw.up() && pair.server.established() == 1; }, turn)) << raw.error();
    std::string to_us, to_raw;
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(SSL_key_update(raw.ssl(), kind), 1);
      ASSERT_TRUE(raw.send("ping " + std::to_string(i) + "\n"));
      to_us += "ping " + std::to_string(i) + "\n";
      ASSERT_TRUE(until({&pair.server}, [&] { return received(pair.server) == to_us; }, turn)) << raw.error();
      const std::string pong = "pong " + std::to_string(i) + "\n";
      ASSERT_EQ(pair.server.driver().submit(0, bytes(pong)), Submit::sent);
      to_raw += pong;
      ASSERT_TRUE(until({&pair.server}, [&] { return raw.received() == to_raw; }, turn)) << raw.error();
    }
    some_turns({&pair.server});
    EXPECT_EQ(pair.server[0].sent, 0u) << "our answer to a KeyUpdate is no submit";
    SSL_shutdown(raw.ssl());
    ASSERT_TRUE(until({&pair.server}, [&] { return pair.server[0].closed == 1; }));
    EXPECT_EQ(pair.server[0].error, 0u);
  }
}

TEST_P(TlsHandshake, CloseNotifyIsSent) {
  Pair pair(config, "127.0.0.1");
  const uint16_t port = pair.server.driver().listen(1, 0).value();
  RawPeer raw(Role::client, pair.secrets[0]);
  raw.take(connect_to(port));
  const auto turn = [&] { raw.turn(); };
  ASSERT_TRUE(until({&pair.server}, [&] { return raw.up() && pair.server.established() == 1; }, turn));
  ASSERT_EQ(pair.server.driver().submit(0, bytes("the end")), Submit::sent);
  pair.server.driver().finish(0);
  ASSERT_TRUE(until({&pair.server}, [&] { return raw.closed() || !raw.error().empty(); }, turn));
  EXPECT_TRUE(raw.closed()) << raw.error();
  EXPECT_EQ(raw.received(), "the end");
}

INSTANTIATE_TEST_SUITE_P(All, TlsHandshake, testing::ValuesIn(engine_names()), 
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace fsbl::contract
