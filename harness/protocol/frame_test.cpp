// Frames: what is malformed, oversized, late or cut ends with a named error and never a hang.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "harness/core/fd.h"
#include "harness/protocol/frame.h"

namespace fsbl {
namespace {

constexpr Nanos kShort = 50'000'000;

struct Pair {
  UniqueFd a, b;
  Pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) a.reset(fds[0]), b.reset(fds[1]);
  }
};

TEST(Frame, RoundTripsWholeAndByteByByte) {
  const Frame frame{FrameKind::blob, 7, std::string("a\0b", 3)};
  const std::string bytes = encode_frame(frame);
  FrameParser parser;
  for (char c : bytes) {
    auto early = parser.next();
    ASSERT_TRUE(early && !*early);
    parser.feed({&c, 1});
  }
  auto got = parser.next();
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->payload, frame.payload);
  EXPECT_EQ((*got)->id, 7u);
  EXPECT_TRUE(parser.empty());
}

TEST(Frame, UnknownKindAndOversizeAreErrors) {
  FrameParser unknown;
  unknown.feed(std::string("\x00\x00\x00\x00\x09\x00\x00\x00\x00", 9));
  EXPECT_NE(unknown.next().error().why.find("malformed"), std::string::npos);
  FrameParser large;
  large.feed(std::string("\xff\xff\xff\xff\x01\x00\x00\x00\x00", 9));
  EXPECT_NE(large.next().error().why.find("oversized"), std::string::npos);
}

TEST(Channel, LatePeerIsNamed) {
  Pair pair;
  Channel channel(pair.a.get(), pair.a.get(), "the agent of the server");
  const auto reply = call(channel, 1, {{"op", "hello"}}, kShort);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message().find("the agent of the server"), std::string::npos);
  EXPECT_NE(reply.error().message().find("too late"), std::string::npos);
}

TEST(Channel, DeadPeerAndHalfFrameAreNamed) {
  Pair pair;
  Channel channel(pair.a.get(), pair.a.get(), "peer");
  ASSERT_EQ(write(pair.b.get(), "\x05\x00\x00", 3), 3);
  pair.b.reset();
  const auto frame = channel.receive(kShort);
  ASSERT_FALSE(frame);
  EXPECT_NE(frame.error().why.find("inside a frame"), std::string::npos);
}

TEST(Channel, ReplyOutOfStepIsAFault) {
  Pair pair;
  Channel here(pair.a.get(), pair.a.get(), "there"), there(pair.b.get(), pair.b.get(), "here");
  ASSERT_TRUE(send_reply(there, 2, Json(1), kShort));
  ASSERT_TRUE(send_reply(there, 1, Json(1), kShort));
  EXPECT_FALSE(receive_reply(here, 1, kShort));
  EXPECT_TRUE(receive_reply(here, 1, kShort));
}

TEST(Channel, ErrorsTravelWhole) {
  Pair pair;
  Channel here(pair.a.get(), pair.a.get(), "there"), there(pair.b.get(), pair.b.get(), "here");
  ASSERT_TRUE(send_reply(there, 1, Expected<Json>(unavailable("open tun", "EACCES", "load the module")), kShort));
  const auto reply = receive_reply(here, 1, kShort);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::unavailable);
  EXPECT_EQ(reply.error().message(), "open tun: EACCES; load the module");
}

TEST(Request, NotJsonAndNoOpAreRefused) {
  EXPECT_FALSE(parse_request({FrameKind::blob, 1, "{}"}));
  EXPECT_FALSE(parse_request({FrameKind::json, 1, "{"}));
  EXPECT_FALSE(parse_request({FrameKind::json, 1, "[]"}));
  EXPECT_FALSE(parse_request({FrameKind::json, 1, R"({"op": 3})"}));
  EXPECT_TRUE(parse_request({FrameKind::json, 1, R"({"op": "hello"})"}));
}

}  // namespace
}  // namespace fsbl
