// Somebody on the way changes or cuts what passes: an error on the side that receives it, and never wrong data.
#include "transports/contract_text.h"
#include "transports/tls/raw_peer_for_test.h"

namespace fsbl::contract {
namespace {

constexpr size_t kBytes = 100'000;
constexpr ssize_t kWireBytes = kBytes + 7 * 22;  // in seven records

struct Place {
  const char* name;
  ssize_t after;  // wire bytes
  size_t whole;   // bytes in the records before it
};
constexpr Place kPlaces[] = {{"header", 3, 0}, {"text", 50'000, 3 * 16384}, {"tag", kWireBytes - 1, 6 * 16384}};

struct Case {
  std::string engine;
  Role sender;
  Place place;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.engine; }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const EngineDescriptor* engine : engines())
    for (Role sender : kRoles)
      for (const Place& place : kPlaces) all.push_back({std::string(engine->name), sender, place});
  return all;
}

class TlsTamper : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config.transport = {"tls", "none", "tls", GetParam().engine};
    if (const std::string why = why_not(config.transport); !why.empty()) GTEST_SKIP() << why;
    pair.emplace(config, "127.0.0.1");
    relay.emplace(pair->server.driver().listen(1, 0).value());
    ASSERT_TRUE(pair->client.driver().open(1, relay->port()));
    ASSERT_TRUE(turn_until([&] { return pair->client.established() == 1 && pair->server.established() == 1; }));
  }
  bool turn_until(const std::function<bool()>& done) {
    return until({&pair->client, &pair->server}, done, [this] { relay->turn(); });
  }
  Role sending() const { return GetParam().sender; }
  End& sender() { return sending() == Role::client ? pair->client : pair->server; }
  End& receiver() { return sending() == Role::client ? pair->server : pair->client; }
  void expect_error_without_wrong_data() {
    EXPECT_EQ(text.difference(0, sending(), receiver()[0].received), "");
    EXPECT_EQ(receiver()[0].closed, 0u) << "broken off, not ended";
    EXPECT_TRUE(receiver().driver().peek(0).empty());
    EXPECT_EQ(receiver().driver().submit(0, text.at(0, sending(), 0, 1)), Submit::dead);
    EXPECT_TRUE(receiver().driver().refusal(0).is_null()) << "no refusal: " << receiver().driver().refusal(0);
  }

  CellConfig config;
  const Text text;
  std::optional<Pair> pair;
  std::optional<Relay> relay;
};

TEST_P(TlsTamper, OneFlippedBitIsAnError) {
  relay->flip(sending(), GetParam().place.after);
  ASSERT_NE(sender().driver().submit(0, text.at(0, sending(), 0, kBytes)), Submit::dead);
  ASSERT_TRUE(turn_until([&] { return receiver()[0].error == 1; }));
  EXPECT_TRUE(relay->flipped());
  EXPECT_EQ(receiver()[0].received.size(), GetParam().place.whole);
  if (GetParam().place.after > 3) {
    EXPECT_NE(receiver().driver().failure(0).find("bad record mac"), std::string::npos) << receiver().driver().failure(0);
  }
  expect_error_without_wrong_data();
  // The one who sent it is told.
  ASSERT_TRUE(turn_until([&] { return sender()[0].error == 1; }));
}

TEST_P(TlsTamper, ACutIsAnErrorThoughTcpEndsCleanly) {
  ASSERT_NE(sender().driver().submit(0, text.at(0, sending(), 0, kBytes)), Submit::dead);
  const size_t whole = GetParam().place.whole;
  ASSERT_TRUE(turn_until([&] { return receiver()[0].received.size() >= whole; }));
  relay->cut(sending());
  ASSERT_TRUE(turn_until([&] { return receiver()[0].error == 1; }));
  EXPECT_NE(receiver().driver().failure(0).find("close_notify"), std::string::npos) << receiver().driver().failure(0);
  expect_error_without_wrong_data();
}

TEST_P(TlsTamper, WithoutTamperingTheRelayChangesNothing) {
  ASSERT_NE(sender().driver().submit(0, text.at(0, sending(), 0, kBytes)), Submit::dead);
  sender().driver().finish(0);
  ASSERT_TRUE(turn_until([&] { return receiver()[0].closed == 1; }));
  EXPECT_EQ(receiver()[0].received.size(), kBytes);
  EXPECT_EQ(text.difference(0, sending(), receiver()[0].received), "");
  EXPECT_EQ(sender().driver().wire(0).out, receiver().driver().wire(0).in);
}

INSTANTIATE_TEST_SUITE_P(All, TlsTamper, testing::ValuesIn(cases()), [](const auto& info) {
  return test_name(info.param.engine + '_' + std::string(to_text(info.param.sender)) + '_' + info.param.place.name);
});

}  // namespace
}  // namespace fsbl::contract
