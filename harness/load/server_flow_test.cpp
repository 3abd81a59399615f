// The server's half of a flow, without a socket: greeting, whole requests, whole replies, and what it refuses.
#include "harness/load/server_flow.h"

#include <gtest/gtest.h>

namespace fsbl {
namespace {

class ServerFlowTest : public testing::Test {
 protected:
  Hello hello(uint32_t flow) const {
    Hello message;
    message.flow = flow;
    message.canary = {'x', 'y'};
    return message;
  }
  ServerFlow greeted(uint32_t flow = 5) {
    ServerFlow server(pattern, load);
    EXPECT_TRUE(server.receive(bytes_of(hello(flow))));
    EXPECT_EQ(server.to_send().size(), sizeof(Ready));
    server.took(sizeof(Ready));
    position = Pattern::start_of(flow, Role::client);
    return server;
  }
  // The client's next bytes.
  std::vector<std::byte> next(size_t size) {
    std::vector<std::byte> bytes;
    while (bytes.size() < size) {
      const auto more = pattern.at(position, size - bytes.size());
      bytes.insert(bytes.end(), more.begin(), more.end());
      position += more.size();
    }
    return bytes;
  }
  // Takes all that the flow has to send (of a request-response flow: a down stream has no end), `at_most` bytes a turn.
  static std::vector<std::byte> take(ServerFlow& server, size_t at_most) {
    std::vector<std::byte> bytes;
    for (auto data = server.to_send(); !data.empty(); data = server.to_send()) {
      data = data.first(std::min(data.size(), at_most));
      bytes.insert(bytes.end(), data.begin(), data.end());
      server.took(data.size());
    }
    return bytes;
  }

  LoadConfig load{.payload_bytes = 1000, .reply_bytes = 64, .verify = Verify::full};
  const Pattern pattern{8};
  uint64_t position = 0;
};

TEST_F(ServerFlowTest, GreetsOnceTheHelloIsWholeAndGivesTheCanaryBack) {
  for (size_t cut = 0; cut <= sizeof(Hello); ++cut) {
    ServerFlow server(pattern, load);
    const Hello message = hello(3);
    const auto bytes = bytes_of(message);
    EXPECT_TRUE(server.receive(bytes.first(cut)));
    EXPECT_EQ(server.to_send().empty(), cut < sizeof(Hello));
    EXPECT_TRUE(server.receive(bytes.subspan(cut)));
    EXPECT_TRUE(server.greeted());
    EXPECT_FALSE(server.ready_sent());
    const auto answer = take(server, 7);
    ASSERT_EQ(answer.size(), sizeof(Ready));
    Ready ready;
    std::memcpy(&ready, answer.data(), sizeof ready);
    EXPECT_TRUE(is_valid(ready));
    EXPECT_EQ(ready.flow, 3u);
    EXPECT_EQ(ready.canary, message.canary);
    EXPECT_TRUE(server.ready_sent());
    EXPECT_EQ(server.flow(), 3u);
  }
}

TEST_F(ServerFlowTest, RefusesAForeignHello) {
  Hello foreign = hello(0);
  foreign.magic[7] = '2';
  ServerFlow server(pattern, load);
  EXPECT_FALSE(server.receive(bytes_of(foreign)));
  EXPECT_EQ(server.error(), "the peer is not an fsbl worker of this protocol version");
  EXPECT_TRUE(server.to_send().empty());
}

TEST_F(ServerFlowTest, AnswersAWholeRequestAndNoneBefore) {
  for (uint64_t payload : {uint64_t{1}, uint64_t{1000}, uint64_t{65537}, uint64_t{3} << 20}) {
    load.payload_bytes = payload;
    ServerFlow server = greeted();
    for (int request = 0; request < 3; ++request) {
      for (uint64_t left = payload; left > 1;) {
        const size_t size = std::min<uint64_t>(left - 1, 10'007);
        ASSERT_TRUE(server.receive(next(size)));
        left -= size;
        ASSERT_TRUE(server.to_send().empty()) << "answered before the request was whole";
        ASSERT_EQ(server.outstanding(), 0u);
      }
      ASSERT_TRUE(server.receive(next(1)));
      ASSERT_EQ(server.outstanding(), 1u);
      ASSERT_EQ(take(server, 10).size(), 64u);
      ASSERT_EQ(server.answered(), request + 1u);
      ASSERT_EQ(server.outstanding(), 0u);
    }
  }
}

TEST_F(ServerFlowTest, RequestsThatCameTogetherAreAllAnswered) {
  ServerFlow server = greeted();
  ASSERT_TRUE(server.receive(next(2500)));
  EXPECT_EQ(server.outstanding(), 2u);
  const auto replies = take(server, 1000);
  EXPECT_EQ(replies.size(), 128u);
  EXPECT_TRUE(pattern.equal(Pattern::start_of(5, Role::server), replies));
  ASSERT_TRUE(server.receive(next(500)));
  EXPECT_EQ(take(server, 1000).size(), 64u);
  EXPECT_EQ(server.answered(), 3u);
}

TEST_F(ServerFlowTest, ARequestMayComeWithTheHello) {
  ServerFlow server(pattern, load);
  const Hello message = hello(5);
  position = Pattern::start_of(5, Role::client);
  auto bytes = next(1000);
  bytes.insert(bytes.begin(), bytes_of(message).begin(), bytes_of(message).end());
  ASSERT_TRUE(server.receive(bytes));
  EXPECT_EQ(take(server, 9999).size(), sizeof(Ready) + 64);
}

TEST_F(ServerFlowTest, LongRepliesAreThePatternInOnePiece) {
  load.reply_bytes = 3 * Pattern::kMaxChunk + 17;
  ServerFlow server = greeted();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(server.receive(next(1000)));
    const auto reply = take(server, 100'000);
    ASSERT_EQ(reply.size(), load.reply_bytes);
    EXPECT_TRUE(pattern.equal(Pattern::start_of(5, Role::server) + i * load.reply_bytes, reply));
  }
  EXPECT_EQ(server.answered(), 2u);
}

TEST_F(ServerFlowTest, WrongBytesEndTheFlow) {
  ServerFlow server = greeted();
  auto bytes = next(1000);
  bytes[500] ^= std::byte{4};
  EXPECT_FALSE(server.receive(bytes));
  EXPECT_EQ(server.error(), "received bytes differ from those sent");
  EXPECT_TRUE(server.to_send().empty()) << "a wrong request was answered";
}

TEST_F(ServerFlowTest, AnotherFlowsBytesAreWrong) {
  ServerFlow server = greeted(5);
  position = Pattern::start_of(6, Role::client);
  EXPECT_FALSE(server.receive(next(1000)));
}

TEST_F(ServerFlowTest, StreamsGoOneWayUntilThePeerCloses) {
  load.shape = Shape::stream;
  load.direction = Direction::down;
  ServerFlow down = greeted();
  for (int i = 0; i < 10; ++i) {
    const auto data = down.to_send();
    ASSERT_EQ(data.size(), 1000u);
    EXPECT_TRUE(pattern.equal(Pattern::start_of(5, Role::server) + static_cast<uint64_t>(i) * 1000, data));
    down.took(data.size());
  }
  EXPECT_FALSE(down.ended());
  down.peer_closed();
  EXPECT_TRUE(down.to_send().empty());
  EXPECT_TRUE(down.ended());

  load.direction = Direction::up;
  ServerFlow up = greeted();
  ASSERT_TRUE(up.receive(next(123'456)));
  EXPECT_TRUE(up.to_send().empty());
  EXPECT_EQ(up.outstanding(), 0u);
  up.peer_closed();
  EXPECT_TRUE(up.ended());
}

TEST_F(ServerFlowTest, EndsAfterItsLastReply) {
  ServerFlow server = greeted();
  EXPECT_FALSE(server.ended());
  ASSERT_TRUE(server.receive(next(1000)));
  server.peer_closed();
  EXPECT_FALSE(server.ended()) << "a reply is owed";
  const auto reply = server.to_send();
  server.took(reply.size() - 1);
  EXPECT_FALSE(server.ended());
  server.took(1);
  EXPECT_TRUE(server.ended());
}

TEST_F(ServerFlowTest, AFlowThatNeverGreetedEndsWhenItCloses) {
  ServerFlow server(pattern, load);
  server.peer_closed();
  EXPECT_TRUE(server.ended());
  EXPECT_FALSE(server.greeted());
}

}  // namespace
}  // namespace fsbl
