// Our ends against `openssl s_server` and `s_client`, over every record engine: bytes, record sizes, padding,
// tickets, KeyUpdates, and both kinds of end.
#include <fstream>
#include <iterator>

#include "transports/tls/openssl_program_for_test.h"

namespace fsbl::contract {
namespace {

// How the peer cuts and dresses its records.
const std::vector<Arguments> kServerHabits = {{},
                                              {"-ciphersuites", "TLS_AES_128_GCM_SHA256"},
                                              {"-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"},
                                              {"-max_send_frag", "512"},
                                              {"-max_send_frag", "16384", "-split_send_frag", "1000"},
                                              {"-record_padding", "512"},
                                              {"-record_padding", "16384"},
                                              {"-num_tickets", "4"},
                                              {"-num_tickets", "0"}};
const std::vector<Arguments> kClientHabits = {
    {},
    {"-ciphersuites", "TLS_AES_128_GCM_SHA256"},
    {"-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"},
    {"-max_send_frag", "512"},
    {"-record_padding", "512"},
    {"-record_padding", "16384"},
    // RFC 6066: our records to this client may not be larger either.
    {"-maxfraglen", "512"},
    {"-maxfraglen", "4096", "-record_padding", "1024"}};

std::string text_of(const Arguments& arguments) {
  std::string text = "openssl";
  for (const std::string& argument : arguments) text += ' ' + argument;
  return text;
}

class OpensslPrograms : public OpensslPeer {
 protected:
  // What we offer follows the cipher that the program was told.
  void follow(const Arguments& habit) {
    config.tls.cipher = !habit.empty() && habit[0] == "-ciphersuites" ? habit[1] : TlsConfig().cipher;
  }
};

TEST_P(OpensslPrograms, OurClientAndTheServerExchange) {
  for (const Arguments& habit : kServerHabits) {
    SCOPED_TRACE(text_of(habit));
    follow(habit);
    Program server = s_server(habit);
    const uint16_t port = port_of(server);
    End client = our_client();
    ASSERT_TRUE(open(client, server, port));
    EXPECT_EQ(client.driver().report(0).handshake["cipher"], config.tls.cipher);
    exchange_all_sizes(client, server);
    if (HasFailure()) return;
    client.driver().finish(0);
    ASSERT_TRUE(over(client, server)) << server.all();
    EXPECT_EQ(client[0].error, 0u) << client.driver().failure(0) << server.err;
  }
}

TEST_P(OpensslPrograms, TheClientAndOurServerExchange) {
  for (const Arguments& habit : kClientHabits) {
    SCOPED_TRACE(text_of(habit));
    follow(habit);
    End server = our_server();
    Program client = s_client(server.driver().listen(1, 0).value(), habit);
    ASSERT_TRUE(accept(server, client));
    EXPECT_EQ(server.driver().report(0).handshake["cipher"], config.tls.cipher);
    exchange_all_sizes(server, client);
    if (HasFailure()) return;
    server.driver().finish(0);
    ASSERT_TRUE(until_with(client, {&server}, [&] { return client.ended(); })) << client.all();
  }
}

// --- tickets ---

TEST_P(OpensslPrograms, TheServersTicketsAreUsedWhenResumptionIsOnAndReadOverWhenItIsOff) {
  for (bool resumption : {false, true}) {
    SCOPED_TRACE(resumption ? "resumption on" : "resumption off");
    config.tls.resumption = resumption;
    Program server = s_server({"-num_tickets", "4", "-rev"});
    const uint16_t port = port_of(server);
    End client = our_client();
    for (FlowId id = 0; id < 3; ++id) {
      ASSERT_TRUE(open(client, server, port, id));
      EXPECT_EQ(client.driver().report(id).handshake["resumed"], resumption && id > 0) << id;
      EXPECT_EQ(client.driver().report(id).handshake["peer_id"], "spiffe://fsbl.test/worker/server") << id;
      const std::string line =
          letters(5000, id).substr(0, 700) + '\n';  // -rev: every line comes back reversed
      submit(client, line, id);
      ASSERT_TRUE(until_with(server, {&client}, [&] { return client[id].received.size() >= line.size(); }))
          << server.all();
      EXPECT_EQ(received_by(client, id), std::string(line.rbegin() + 1, line.rend()) + '\n');
      client.driver().finish(id);
      ASSERT_TRUE(over(client, server, id));
      EXPECT_EQ(client[id].error, 0u) << client.driver().failure(id);
    }
  }
}

TEST_P(OpensslPrograms, OurTicketsAreUsedByTheClientWhenResumptionIsOnAndThereAreNoneWhenItIsOff) {
  for (bool resumption : {false, true}) {
    SCOPED_TRACE(resumption ? "resumption on" : "resumption off");
    config.tls.resumption = resumption;
    End server = our_server();
    const uint16_t port = server.driver().listen(2, 0).value();
    const std::string session = folder.file("session.pem");
    for (FlowId id = 0; id < 2; ++id) {
      const bool again = resumption && id > 0;
      Program client =
          s_client(port, again ? Arguments{"-sess_in", session} : Arguments{"-sess_out", session});
      ASSERT_TRUE(accept(server, client, id));
      const std::string to_program = letters(3000, id), to_us = letters(2000, id + 5);
      submit(server, to_program, id);
      client.input = to_us;
      ASSERT_TRUE(until_with(client, {&server}, [&] {
        return server[id].received.size() >= to_us.size() && client.out.find(to_program) != std::string::npos;
      })) << client.all();
      EXPECT_EQ(received_by(server, id), to_us);
      EXPECT_EQ(server.driver().report(id).handshake["resumed"], again);
      EXPECT_EQ(server.driver().report(id).handshake["peer_id"], "spiffe://fsbl.test/worker/client");
      EXPECT_EQ(client.says("Reused, TLSv1.3"), again) << client.all();
      if (id == 0) {  // a resumed s_client says nothing of tickets
        EXPECT_EQ(client.says("New Session Ticket arrived"), resumption) << client.all();
      }
      client.end_input();
      ASSERT_TRUE(over(server, client, id));
      EXPECT_EQ(server[id].closed, 1u) << server.driver().failure(id);
      server.driver().finish(id);  // s_client waits for our end
      ASSERT_TRUE(until_with(client, {&server}, [&] { return client.ended(); }));
    }
  }
}

// --- KeyUpdate ---

class OpensslKeyUpdate : public OpensslPrograms {
 protected:
  // With these the program writes down every handshake message.
  Arguments with_log() const { return {"-msg", "-msgfile", folder.file("messages")}; }
  size_t key_updates(const std::string& arrow) const {
    std::ifstream file(folder.file("messages"));
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    return count_of(arrow + " TLS 1.3, Handshake [length 0005], KeyUpdate", log);
  }
  static void command(const std::string& line, End& end, Program& program) {
    program.input = line;
    ASSERT_TRUE(until_with(program, {&end}, [&] { return program.input_taken(); })) << program.all();
  }
  // 'k' sends a KeyUpdate, 'K' one that asks for ours. After each, bytes go both ways under the new keys.
  void update_keys(End& end, Program& program) {
    exchange(end, program, 1000, 1);
    constexpr std::string_view kCommands = "kKkkKK";
    for (size_t i = 0; i < kCommands.size() && !HasFailure(); ++i) {
      SCOPED_TRACE("KeyUpdate " + std::to_string(i));
      command({kCommands[i], '\n'}, end, program);
      exchange(end, program, 5, 10 + i);
      exchange(end, program, 40'000, 20 + i);
    }
    EXPECT_EQ(key_updates(">>>"), 6u) << "sent by the program";
    EXPECT_EQ(key_updates("<<<"), 3u) << "answered by us";
    EXPECT_EQ(end.driver().report(0).key_updates_in, 6u);
    EXPECT_EQ(end.driver().report(0).key_updates_out, 3u);
    // And in the middle of what we send.
    const std::string up = letters(600'000, 99);
    const size_t mark = program.out.size();
    submit(end, up);
    program.input = "K\n";
    ASSERT_TRUE(until_with(program, {&end},
                           [&] {
                             return end[0].error || (printed(program, mark).find(up) != std::string::npos &&
                                                     program.input_taken());
                           }))
        << printed(program, mark).size() << " of " << up.size();
    EXPECT_EQ(end[0].error, 0u) << end.driver().failure(0);
    exchange(end, program, 20'000, 50);
    EXPECT_EQ(key_updates("<<<"), 4u);
  }
};

TEST_P(OpensslKeyUpdate, FromTheServer) {
  Program server = s_server(with_log());
  const uint16_t port = port_of(server);
  End client = our_client();
  ASSERT_TRUE(open(client, server, port));
  update_keys(client, server);
}

TEST_P(OpensslKeyUpdate, FromTheClient) {
  End server = our_server();
  Program client = s_client(server.driver().listen(1, 0).value(), with_log());
  ASSERT_TRUE(accept(server, client));
  update_keys(server, client);
}

// 300 000 bytes are 19 records.
TEST_P(OpensslKeyUpdate, FromOurClient) {
  config.tls.rekey_records = 5;
  Program server = s_server(with_log());
  const uint16_t port = port_of(server);
  End client = our_client();
  ASSERT_TRUE(open(client, server, port));
  exchange_all_sizes(client, server);
  EXPECT_GE(key_updates("<<<"), 3u);
  EXPECT_EQ(key_updates("<<<"), client.driver().report(0).key_updates_out);
}

TEST_P(OpensslKeyUpdate, FromOurServer) {
  config.tls.rekey_records = 5;
  End server = our_server();
  Program client = s_client(server.driver().listen(1, 0).value(), with_log());
  ASSERT_TRUE(accept(server, client));
  exchange_all_sizes(server, client);
  EXPECT_GE(key_updates("<<<"), 3u);
  EXPECT_EQ(key_updates("<<<"), server.driver().report(0).key_updates_out);
}

// --- the end ---

TEST_P(OpensslPrograms, AServerThatClosesIsClosedAndOneThatIsKilledIsAnError) {
  for (bool killed : {false, true}) {
    SCOPED_TRACE(killed ? "killed" : "closes");
    Program server = s_server({"-rev"});
    const uint16_t port = port_of(server);
    End client = our_client();
    ASSERT_TRUE(open(client, server, port));
    const std::string line = "abde\n", close = "CLOSE\n";  // s_server -rev hangs up properly at this line
    submit(client, line);
    ASSERT_TRUE(until_with(server, {&client}, [&] { return received_by(client) == "edba\n"; }))
        << server.all();
    if (killed)
      server.kill();
    else
      submit(client, close);
    ASSERT_TRUE(over(client, server));
    EXPECT_EQ(client[0].closed, killed ? 0u : 1u);
    EXPECT_EQ(client[0].error, killed ? 1u : 0u) << client.driver().failure(0);
    EXPECT_EQ(client.driver().failure(0).empty(), !killed);
    EXPECT_TRUE(client.driver().refusal(0).is_null()) << client.driver().refusal(0);
  }
}

TEST_P(OpensslPrograms, AClientThatClosesIsClosedAndOneThatIsKilledIsAnError) {
  for (bool killed : {false, true}) {
    SCOPED_TRACE(killed ? "killed" : "closes");
    End server = our_server();
    Program client = s_client(server.driver().listen(1, 0).value(), {});
    ASSERT_TRUE(accept(server, client));
    exchange(server, client, 100, 1);
    if (killed)
      client.kill();
    else
      client.input = "Q\n";
    ASSERT_TRUE(over(server, client));
    EXPECT_EQ(server[0].closed, killed ? 0u : 1u);
    EXPECT_EQ(server[0].error, killed ? 1u : 0u) << server.driver().failure(0);
    EXPECT_EQ(server.driver().failure(0).empty(), !killed);
  }
}

// --- refusals ---

TEST_P(OpensslPrograms, TheServerRefusesAStrangersCertificateAndWeSayThatItDid) {
  Program server = s_server({});
  const uint16_t port = port_of(server);
  End client = our_strange_client();
  ASSERT_TRUE(client.driver().open(1, port));
  ASSERT_TRUE(until_with(server, {&client}, [&] { return client[0].error > 0; })) << server.all();
  const Json refusal = client.driver().refusal(0);
  ASSERT_TRUE(refusal.is_object()) << client.driver().failure(0) << server.all();
  EXPECT_EQ(refusal["by"], "peer");
  EXPECT_NE(refusal["reason"].get<std::string>().find("unknown CA"), std::string::npos) << refusal;
}

TEST_P(OpensslPrograms, WeRefuseAStrangersCertificateAndTheProgramIsTold) {
  {
    End server = our_server();
    Program client = s_client(server.driver().listen(1, 0).value(), {}, "strange-client");
    ASSERT_TRUE(until_with(client, {&server}, [&] { return server[0].error > 0 && client.says("alert"); }))
        << client.all();
    EXPECT_EQ(server.driver().refusal(0)["by"], "us");
    EXPECT_EQ(server[0].established, 0u);
  }
  Program server = s_server({}, "strange-server");
  const uint16_t port = port_of(server);
  End client = our_client();
  ASSERT_TRUE(client.driver().open(1, port));
  ASSERT_TRUE(until_with(server, {&client}, [&] { return client[0].error > 0 && server.says("alert"); }))
      << server.all();
  EXPECT_EQ(client.driver().refusal(0)["by"], "us");
  EXPECT_EQ(client[0].established, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, OpensslPrograms, testing::ValuesIn(tls_engines()), engine_test_name);
INSTANTIATE_TEST_SUITE_P(All, OpensslKeyUpdate, testing::ValuesIn(tls_engines()), engine_test_name);

}  // namespace
}  // namespace fsbl::contract
