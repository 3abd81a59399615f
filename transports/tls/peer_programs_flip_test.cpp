// One bit of a record is turned over between one of our ends and openssl's: whoever receives it says so, the
// other learns it by the alert, and nothing of the hurt record is ever passed on.
#include "transports/tls/openssl_program_for_test.h"

namespace fsbl::contract {
namespace {

constexpr size_t kHurt = 1000;                     // bytes of the record that is hurt
constexpr ssize_t kHurtWire = 5 + kHurt + 1 + 16;  // with header, type and tag (RFC 8446, 5.2)

struct Place {
  const char* name;
  ssize_t after;       // wire bytes of the record
  bool authenticated;  // found by the tag alone; other places may end in another alert
};
constexpr Place kPlaces[] = {{"type", 0, false},
                             {"version", 1, false},
                             {"length, high", 3, false},
                             {"length, low", 4, false},
                             {"text", 500, true},
                             {"inner type", kHurtWire - 17, true},
                             {"first of the tag", kHurtWire - 16, true},
                             {"last of the tag", kHurtWire - 1, true}};

class OpensslFlips : public OpensslPeer {
 protected:
  // Both ends have exchanged, so that what passes the relay now is this record and nothing else.
  static bool ready(End& end, Program& program, Relay& relay) {
    const std::string hello = letters(20'000, 3);
    const size_t mark = program.out.size();
    program.input = hello;
    submit(end, hello);
    const bool done = until_with(
        program, {&end},
        [&] {
          return end[0].received.size() >= hello.size() &&
                 printed(program, mark).find(hello) != std::string::npos;
        },
        [&] { relay.turn(); });
    EXPECT_TRUE(done) << program.all();
    return done;
  }

  static void we_send(End& end, Program& program, Relay& relay, Role us, const Place& place) {
    const std::string text = letters(kHurt, 17), more = letters(3000, 18);
    relay.flip(us, place.after);
    submit(end, text);
    bool sent_more = false;  // a length that grew needs something to fill it
    ASSERT_TRUE(until_with(
        program, {&end},
        [&] { return end[0].error > 0 && (!place.authenticated || program.says("bad record mac")); },
        [&] {
          relay.turn();
          if (relay.flipped() && !std::exchange(sent_more, true)) end.driver().submit(0, bytes_of(more));
        }))
        << program.all();
    if (place.authenticated) {
      EXPECT_NE(end.driver().failure(0).find("bad record mac"), std::string::npos) << end.driver().failure(0);
    }
    EXPECT_FALSE(program.says(text.substr(0, 30)));
    EXPECT_FALSE(program.says(more.substr(0, 30)));
  }

  // RFC 8446 writes bad_record_mac, OpenSSL "bad record mac"; an engine may say either.
  static std::string failure_of(End& end) {
    std::string text = end.driver().failure(0);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  }

  static void program_sends(End& end, Program& program, Relay& relay, Role us, const Place& place) {
    const std::string before = received_by(end);
    relay.flip(us == Role::client ? Role::server : Role::client, place.after);
    program.input = letters(kHurt, 17);
    bool sent_more = false;
    ASSERT_TRUE(until_with(
        program, {&end}, [&] { return end[0].error > 0 && program.says("alert"); },
        [&] {
          relay.turn();
          if (relay.flipped() && !std::exchange(sent_more, true)) program.input += letters(3000, 18);
        }))
        << end[0].error << program.all();
    EXPECT_NE(end.driver().failure(0), "");
    if (place.authenticated) {
      EXPECT_NE(failure_of(end).find("bad record mac"), std::string::npos) << failure_of(end);
      EXPECT_TRUE(program.says("alert bad record mac")) << program.err;
    }
    EXPECT_EQ(end[0].closed, 0u);
    EXPECT_TRUE(received_by(end) == before) << "something of the hurt record came through";
  }

  template <class Run>
  void at_every_place(Run run) {
    for (const Place& place : kPlaces) {
      SCOPED_TRACE(place.name);
      run(place);
      if (HasFailure()) return;
    }
  }
  void with_server(void (*run)(End&, Program&, Relay&, Role, const Place&)) {
    at_every_place([&](const Place& place) {
      Program server = s_server({"-num_tickets", "0"});
      Relay relay(port_of(server));
      End client = our_client();
      ASSERT_TRUE(client.driver().open(1, relay.port()));
      ASSERT_TRUE(until_with(
          server, {&client}, [&] { return client[0].established > 0; }, [&] { relay.turn(); }))
          << server.all();
      if (ready(client, server, relay)) run(client, server, relay, Role::client, place);
    });
  }
  void with_client(void (*run)(End&, Program&, Relay&, Role, const Place&)) {
    at_every_place([&](const Place& place) {
      End server = our_server();
      Relay relay(server.driver().listen(1, 0).value());
      Program client = s_client(relay.port(), {});
      ASSERT_TRUE(until_with(
          client, {&server}, [&] { return server[0].established > 0; }, [&] { relay.turn(); }))
          << client.all();
      if (ready(server, client, relay)) run(server, client, relay, Role::server, place);
    });
  }
};

TEST_P(OpensslFlips, InWhatOurClientSends) {
  with_server(we_send);
}
TEST_P(OpensslFlips, InWhatTheServerSends) {
  with_server(program_sends);
}
TEST_P(OpensslFlips, InWhatOurServerSends) {
  with_client(we_send);
}
TEST_P(OpensslFlips, InWhatTheClientSends) {
  with_client(program_sends);
}

INSTANTIATE_TEST_SUITE_P(All, OpensslFlips, testing::ValuesIn(tls_engines()), engine_test_name);

}  // namespace
}  // namespace fsbl::contract
