// Our ends against gnutls-serv and gnutls-cli, over every record engine.
#include "transports/tls/peer_programs_for_test.h"

namespace fsbl::contract {
namespace {

using Arguments = std::vector<std::string>;

class GnutlsPrograms : public PeerPrograms {
 protected:
  std::vector<std::pair<std::string, std::string>> needed() const override {
    return {{"gnutls-serv", "gnutls-bin"}, {"gnutls-cli", "gnutls-bin"}};
  }
  Arguments common(const std::string& program, const std::string& identity) const {
    return {find_program(program),
            "--x509cafile",
            folder.file("bundle.pem"),
            "--x509certfile",
            folder.file(identity + "-chain.pem"),
            "--x509keyfile",
            folder.file(identity + "-key.pem"),
            "--priority",
            "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
  }
  // Sends every line back. It can't take port 0: another one is tried when somebody was faster.
  std::pair<std::unique_ptr<Program>, uint16_t> gnutls_serv(const Arguments& more,
                                                            const std::string& identity = "server") const {
    for (int attempt = 0;; ++attempt) {
      const uint16_t port = lately_free_port();
      Arguments argv = common("gnutls-serv", identity);
      for (const std::string& argument :
           {std::string("--echo"), std::string("--require-client-cert"), std::string("--verify-client-cert"),
            std::string("-p"), std::to_string(port)})
        argv.push_back(argument);
      argv.insert(argv.end(), more.begin(), more.end());
      auto server = std::make_unique<Program>(argv);
      const bool up =
          until_with(*server, {}, [&] { return server->says("port " + std::to_string(port) + "...done"); });
      if (up || attempt == 5) {
        EXPECT_TRUE(up) << server->all();
        return {std::move(server), port};
      }
    }
  }
  Program gnutls_cli(uint16_t port, const Arguments& more, const std::string& identity = "client") const {
    Arguments argv = common("gnutls-cli", identity);
    for (const std::string& argument :
         {std::string("--insecure"),  // our SVIDs have no host name
          std::string("--logfile"), folder.file("gnutls.log"), std::string("-p"), std::to_string(port)})
      argv.push_back(argument);
    argv.insert(argv.end(), more.begin(), more.end());
    argv.emplace_back("127.0.0.1");
    return Program(std::move(argv));
  }
  static void echo(End& client, Program& server, size_t size, uint64_t seed, FlowId flow = 0) {
    const std::string text = letters(size, seed);
    const size_t had = client[flow].received.size();
    submit(client, text, flow);
    EXPECT_TRUE(until_with(server, {&client}, [&] {
      return client[flow].error || client[flow].received.size() >= had + size;
    })) << server.all();
    EXPECT_EQ(client[flow].error, 0u) << client.driver().failure(flow) << server.all();
    EXPECT_TRUE(received_by(client, flow).substr(had) == text) << "something else came back";
  }
  // `most_to_us`: for a client that drops what doesn't fit one record.
  static void exchange(End& server, Program& client, size_t size, uint64_t seed,
                       size_t most_to_us = SIZE_MAX) {
    const std::string to_us = letters(std::min(size, most_to_us), 2 * seed),
                      to_program = letters(size, 2 * seed + 1);
    const size_t had = server[0].received.size(), mark = client.out.size();
    client.input += to_us;
    submit(server, to_program);
    EXPECT_TRUE(until_with(client, {&server},
                           [&] {
                             return server[0].error ||
                                    (server[0].received.size() >= had + to_us.size() &&
                                     client.out.substr(mark) == to_program);
                           }))
        << server[0].received.size() - had << " bytes came, " << client.out.size() - mark << " of " << size
        << " went" << client.all();
    EXPECT_EQ(server[0].error, 0u) << server.driver().failure(0) << client.all();
    EXPECT_TRUE(received_by(server).substr(had) == to_us) << "something else came";
  }
};

TEST_P(GnutlsPrograms, TheServerEchoesWhatOurClientSends) {
  for (const char* cipher :
       {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
    for (const Arguments& habit : {Arguments{}, Arguments{"--recordsize", "512"}}) {
      SCOPED_TRACE(std::string(cipher) + (habit.empty() ? "" : ", small records"));
      config.tls.cipher = cipher;
      const auto [server, port] = gnutls_serv(habit);
      End client = our_client();
      ASSERT_TRUE(open(client, *server, port));
      EXPECT_EQ(client.driver().report(0).handshake["cipher"], cipher);
      for (size_t size : {1, 20'000, 300'000, 1}) echo(client, *server, size, size);
      client.driver().finish(0);
      ASSERT_TRUE(over(client, *server)) << server->all();
      EXPECT_EQ(client[0].error, 0u) << client.driver().failure(0);
      if (HasFailure()) return;
    }
}

TEST_P(GnutlsPrograms, TheServersTicketsAreUsedWhenResumptionIsOnAndReadOverWhenItIsOff) {
  for (bool resumption : {false, true}) {
    SCOPED_TRACE(resumption ? "resumption on" : "resumption off");
    config.tls.resumption = resumption;
    const auto [server, port] = gnutls_serv({});
    End client = our_client();
    for (FlowId id = 0; id < 3; ++id) {
      ASSERT_TRUE(open(client, *server, port, id));
      echo(client, *server, 3000, id, id);
      EXPECT_EQ(client.driver().report(id).handshake["resumed"], resumption && id > 0) << id;
    }
  }
}

TEST_P(GnutlsPrograms, TheClientAndOurServerExchange) {
  for (const char* cipher :
       {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
    for (const Arguments& habit : {Arguments{}, Arguments{"--recordsize", "512"}}) {
      SCOPED_TRACE(std::string(cipher) + (habit.empty() ? "" : ", small records"));
      config.tls.cipher = cipher;
      End server = our_server();
      Program client = gnutls_cli(server.driver().listen(1, 0).value(), habit);
      ASSERT_TRUE(accept(server, client));
      EXPECT_EQ(server.driver().report(0).handshake["cipher"], cipher);
      // gnutls-cli 3.7.9 sends of every 4096 bytes that it reads only the first record.
      for (size_t size : {1, 20'000, 300'000, 1})
        exchange(server, client, size, size, habit.empty() ? SIZE_MAX : 500);
      client.end_input();
      ASSERT_TRUE(over(server, client)) << client.all();
      EXPECT_EQ(server[0].closed, 1u) << server.driver().failure(0);
      server.driver().finish(0);
      ASSERT_TRUE(until_with(client, {&server}, [&] { return client.ended(); })) << client.all();
      if (HasFailure()) return;
    }
}

// A command that gnutls-cli didn't know would come to us as bytes, and the exchange would see it.
TEST_P(GnutlsPrograms, TheClientUpdatesItsKeysAndAsksForOurs) {
  End server = our_server();
  Program client = gnutls_cli(server.driver().listen(1, 0).value(), {"--inline-commands"});
  ASSERT_TRUE(accept(server, client));
  exchange(server, client, 1000, 1);
  uint64_t i = 0;
  for (const char* command : {"^rekey1^\n", "^rekey^\n", "^rekey1^\n", "^rekey^\n", "^rekey^\n"}) {
    SCOPED_TRACE(command + std::to_string(i));
    client.input = command;
    ASSERT_TRUE(until_with(client, {&server}, [&] { return client.input_taken(); }));
    exchange(server, client, 5, ++i);
    exchange(server, client, 30'000, ++i);
  }
}

TEST_P(GnutlsPrograms, OneThatIsKilledIsAnError) {
  {
    const auto [server, port] = gnutls_serv({});
    End client = our_client();
    ASSERT_TRUE(open(client, *server, port));
    echo(client, *server, 100, 1);
    server->kill();
    ASSERT_TRUE(over(client, *server));
    EXPECT_EQ(client[0].closed, 0u);
    EXPECT_NE(client.driver().failure(0), "");
  }
  End server = our_server();
  Program client = gnutls_cli(server.driver().listen(1, 0).value(), {});
  ASSERT_TRUE(accept(server, client));
  exchange(server, client, 100, 1);
  client.kill();
  ASSERT_TRUE(over(server, client));
  EXPECT_EQ(server[0].closed, 0u);
  EXPECT_NE(server.driver().failure(0), "");
}

TEST_P(GnutlsPrograms, StrangersAreRefusedByEitherSide) {
  {
    End server = our_server();
    Program client = gnutls_cli(server.driver().listen(1, 0).value(), {}, "strange-client");
    ASSERT_TRUE(until_with(client, {&server}, [&] { return server[0].error > 0; })) << client.all();
    EXPECT_EQ(server.driver().refusal(0)["by"], "us");
    EXPECT_EQ(server[0].established, 0u);
  }
  const auto [server, port] = gnutls_serv({});
  End client = our_strange_client();
  ASSERT_TRUE(client.driver().open(1, port));
  ASSERT_TRUE(until_with(*server, {&client}, [&] { return client[0].error > 0; })) << server->all();
  const Json refusal = client.driver().refusal(0);
  ASSERT_TRUE(refusal.is_object()) << client.driver().failure(0) << server->all();
  EXPECT_EQ(refusal["by"], "peer");
}

INSTANTIATE_TEST_SUITE_P(All, GnutlsPrograms, testing::ValuesIn(tls_engines()), engine_test_name);

}  // namespace
}  // namespace fsbl::contract
