// Our end against the openssl program's, both with SVIDs of one authority, data both ways.
#include <sys/stat.h>

#include <filesystem>

#include "harness/core/file.h"
#include "harness/core/process.h"
#include "transports/contract_text.h"
#include "transports/tls/raw_peer_for_test.h"

namespace fsbl::contract {
namespace {

struct Case {
  std::string engine, cipher, group;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.cipher << ' ' << c.group; }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const EngineDescriptor* engine : engines())
    for (const auto& [cipher, group] : {std::pair{"TLS_AES_256_GCM_SHA384", "X25519"},
                                        {"TLS_AES_128_GCM_SHA256", "P-256"},
                                        {"TLS_CHACHA20_POLY1305_SHA256", "P-384"}})
      all.push_back({std::string(engine->name), cipher, group});
  return all;
}

// `openssl s_…` with pipes; what it prints is gathered.
class OpensslProgram {
 public:
  OpensslProgram(std::vector<std::string> arguments) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    const UniqueFd their_in(in[0]), their_out(out[1]);
    in_.reset(in[1]);
    out_.reset(out[0]);
    for (int fd : {in_.get(), out_.get()}) EXPECT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    SpawnOptions options;
    options.argv = {"/usr/bin/openssl"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.fds = {{their_in.get(), 0}, {their_out.get(), 1}, {their_out.get(), 2}};
    auto child = spawn(options);
    EXPECT_TRUE(child) << child.error().message();
    if (child) child_ = std::move(*child);
  }
  // Writes what is left of `input` and reads what there is.
  void turn() {
    if (!input.empty())
      if (const ssize_t n = write(in_.get(), input.data(), std::min<size_t>(input.size(), 4096)); n > 0)
        input.erase(0, static_cast<size_t>(n));
    char chunk[65536];
    if (const ssize_t n = read(out_.get(), chunk, sizeof chunk); n > 0) output.append(chunk, static_cast<size_t>(n));
  }
  bool ended() { return child_.wait(0); }

  std::string input, output;

 private:
  UniqueFd in_, out_;
  Child child_;
};

class Interop : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config.transport = {"tls", "none", "tls", GetParam().engine};
    config.tls.cipher = GetParam().cipher;
    config.tls.group = GetParam().group;
    if (const std::string why = why_not(config.transport); !why.empty()) GTEST_SKIP() << why;
    if (access("/usr/bin/openssl", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/openssl on this host (package openssl)";
    char pattern[] = "/tmp/fsbl-interop-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);  // mode 0700: the keys in it live as long as this test
    folder = pattern;
    secrets = make_secrets(config);
    for (Role role : kRoles) {
      ASSERT_TRUE(write_file_atomic(file(role, "key"), secrets[of(role)]["key_pem"].get<std::string>()));
      ASSERT_TRUE(write_file_atomic(file(role, "chain"), secrets[of(role)]["chain_pem"].get<std::string>()));
    }
    ASSERT_TRUE(write_file_atomic(folder + "/bundle.pem", secrets[0]["bundle_pem"].get<std::string>()));
  }
  void TearDown() override {
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
  std::string file(Role role, const std::string& what) const {
    return folder + '/' + std::string(to_text(role)) + '-' + what + ".pem";
  }
  std::vector<std::string> arguments(const char* program, Role role) const {
    return {program, "-tls1_3", "-cert", file(role, "chain"), "-key", file(role, "key"), "-CAfile", folder + "/bundle.pem",
            "-verify_return_error", "-ciphersuites", GetParam().cipher, "-groups", GetParam().group};
  }

  CellConfig config;
  std::string folder;
  BothRoles<Json> secrets;
};

std::string text_of_lines(size_t lines, size_t length) {
  std::string text;
  SplitMix64 random(5);
  for (size_t i = 0; i < lines; ++i) {
    for (size_t k = 0; k < length; ++k) text.push_back(static_cast<char>('a' + random.below(26)));
    text.push_back('\n');
  }
  return text;
}

std::string received(End& end) {
  return {reinterpret_cast<const char*>(end[0].received.data()), end[0].received.size()};
}

TEST_P(Interop, OurClientWithTheOpensslServer) {
  auto arguments = this->arguments("s_server", Role::server);
  for (const char* more : {"-accept", "127.0.0.1:0", "-Verify", "1", "-rev", "-naccept", "1"}) arguments.emplace_back(more);
  OpensslProgram server(arguments);
  const std::string kAccept = "ACCEPT 127.0.0.1:";
  ASSERT_TRUE(until({}, [&] { server.turn(); return server.output.find('\n', server.output.find(kAccept)) != std::string::npos; }))
      << server.output;
  const auto port = static_cast<uint16_t>(std::stoi(server.output.substr(server.output.find(kAccept) + kAccept.size())));

  End client(make_driver(config, Role::client, "127.0.0.1", secrets[0]));
  ASSERT_TRUE(client.driver().open(1, port));
  ASSERT_TRUE(until({&client}, [&] { return client[0].established + client[0].error > 0; }, [&] { server.turn(); }));
  ASSERT_EQ(client[0].established, 1u) << client.driver().failure(0) << server.output;
  const Json handshake = client.driver().report(0).handshake;
  EXPECT_EQ(handshake["cipher"], GetParam().cipher);
  EXPECT_EQ(handshake["group"], GetParam().group);
  EXPECT_EQ(handshake["peer_id"], "spiffe://fsbl.test/worker/server");

  // The server sends every line back reversed.
  const std::string text = text_of_lines(20, 1000);
  std::string expected;
  for (size_t at = 0; at < text.size(); at += 1001) {
    const std::string line = text.substr(at, 1000);
    expected += std::string(line.rbegin(), line.rend()) + '\n';
    ASSERT_NE(client.driver().submit(0, std::as_bytes(std::span(text).subspan(at, 1001))), Submit::dead);
    ASSERT_TRUE(until({&client}, [&] { return received(client).size() >= expected.size(); }, [&] { server.turn(); }))
        << server.output;
  }
  EXPECT_EQ(received(client), expected);
  client.driver().finish(0);
  ASSERT_TRUE(until({&client}, [&] { return client[0].closed + client[0].error > 0 && server.ended(); }, [&] { server.turn(); }));
  EXPECT_EQ(client[0].error, 0u) << client.driver().failure(0);
}

TEST_P(Interop, TheOpensslClientWithOurServer) {
  End server(make_driver(config, Role::server, "127.0.0.1", secrets[1]));
  const uint16_t port = server.driver().listen(1, 0).value();
  auto arguments = this->arguments("s_client", Role::client);
  for (const std::string& more : {std::string("-connect"), "127.0.0.1:" + std::to_string(port), std::string("-quiet")})
    arguments.push_back(more);
  OpensslProgram client(arguments);
  ASSERT_TRUE(until({&server}, [&] { return server[0].established + server[0].error > 0; }, [&] { client.turn(); }));
  ASSERT_EQ(server[0].established, 1u) << server.driver().failure(0) << client.output;
  const Json handshake = server.driver().report(0).handshake;
  EXPECT_EQ(handshake["cipher"], GetParam().cipher);
  EXPECT_EQ(handshake["group"], GetParam().group);
  EXPECT_EQ(handshake["peer_id"], "spiffe://fsbl.test/worker/client");

  const std::string up = text_of_lines(300, 999), down = text_of_lines(500, 500) + "the last line of all\n";
  client.input = up;
  ASSERT_NE(server.driver().submit(0, std::as_bytes(std::span(down))), Submit::dead);
  ASSERT_TRUE(until({&server}, [&] { return server[0].received.size() >= up.size() && client.output.ends_with("of all\n"); },
                    [&] { client.turn(); }))
      << server[0].received.size() << " of " << up.size() << " bytes came";
  EXPECT_EQ(received(server), up);
  EXPECT_TRUE(client.output.ends_with(down));  // before it stands what openssl says of the certificates
  server.driver().finish(0);
  ASSERT_TRUE(until({&server}, [&] { return client.ended(); }, [&] { client.turn(); }));
}

TEST_P(Interop, TheOpensslClientWithoutCertificateIsRefused) {
  End server(make_driver(config, Role::server, "127.0.0.1", secrets[1]));
  const uint16_t port = server.driver().listen(1, 0).value();
  OpensslProgram client({"s_client", "-tls1_3", "-CAfile", folder + "/bundle.pem", "-connect", "127.0.0.1:" + std::to_string(port)});
  client.input = "let me in\n";
  ASSERT_TRUE(until({&server}, [&] { return server[0].error > 0 && client.ended(); }, [&] { client.turn(); }));
  EXPECT_EQ(server[0].established, 0u);
  EXPECT_EQ(server.driver().refusal(0)["by"], "us");
  client.turn();
  EXPECT_NE(client.output.find("alert certificate required"), std::string::npos) << client.output;
}

INSTANTIATE_TEST_SUITE_P(All, Interop, testing::ValuesIn(cases()), [](const auto& info) {
  return test_name(info.param.engine + '_' + info.param.cipher + '_' + info.param.group);
});

}  // namespace
}  // namespace fsbl::contract
