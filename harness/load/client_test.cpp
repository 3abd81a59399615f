// The client's thread against a scripted driver: what is counted when answers come late, wrong or not at all.
#include "harness/load/client.h"

#include <gtest/gtest.h>

#include "harness/load/scripted_driver_for_test.h"

namespace fsbl {
namespace {

constexpr Nanos kMilli = 1'000'000;
constexpr Nanos kHangLimit = 60'000 * kMilli;

class ClientThreadTest : public testing::Test {
 protected:
  void make() {
    driver = std::make_unique<ScriptedDriver>(pattern, load);
    LoadThreadConfig config{load, 0, load.streams, &pattern, {'c'}};
    client = std::make_unique<ClientThread>(*driver, config);
  }
  ConnectOutcome connect(Nanos timeout = kHangLimit) { return client->connect(1, mono_now_ns() + timeout, false); }
  void connected() { ASSERT_EQ(connect().established, load.streams); }

  static Timeline timeline(Nanos warm_up, Nanos measure, Nanos cool_down, Nanos drain = kHangLimit) {
    Timeline t;
    t.start = mono_now_ns();
    t.warm_end = t.start + warm_up;
    t.measure_end = t.measure_limit = t.warm_end + measure;
    t.stop = t.measure_end + cool_down;
    t.drain_limit = t.stop + drain;
    return t;
  }
  static void expect_books_balance(const ThreadReading& r) {
    EXPECT_EQ(r.planned, r.done + r.failed + r.outstanding)
        << r.done << " done, " << r.failed << " failed, " << r.outstanding << " outstanding";
  }

  LoadConfig load{.payload_bytes = 100, .reply_bytes = 10, .verify = Verify::full};
  const Pattern pattern{4};
  std::unique_ptr<ScriptedDriver> driver;
  std::unique_ptr<ClientThread> client;
};

TEST_F(ClientThreadTest, OneSlowAnswerAfterTheWindowIsInTheHistogram) {
  make();
  connected();
  const Timeline t = timeline(20 * kMilli, 50 * kMilli, 300 * kMilli);
  // One answer when the window is open: the request after it is sent inside. Its answer comes after the window.
  int answered = 0;
  driver->answers = [&](FlowId) {
    const Nanos now = mono_now_ns();
    const bool now_please = answered == 0 ? now > t.warm_end + 10 * kMilli : answered == 1 ? now > t.measure_end + 10 * kMilli : true;
    answered += now_please;
    return now_please;
  };
  const ThreadReading r = client->run(t);
  if (r.window_from > t.warm_end + 10 * kMilli) GTEST_SKIP() << "this host paused the test for longer than its margins";
  EXPECT_EQ(r.latency.count(), 1u);
  EXPECT_GT(r.latency.max(), t.measure_end - r.window_from - 20 * kMilli);
  EXPECT_EQ(r.window_requests, 1u) << "the first answer, of a request sent before the window";
  EXPECT_GE(r.done, 2u);
  expect_books_balance(r);
  EXPECT_EQ(r.failed + r.outstanding, 0u);
}

TEST_F(ClientThreadTest, EveryRequestIsCountedOnceWithinTheEdges) {
  for (uint32_t flows : {1u, 7u, 100u}) {
    load.streams = flows;
    make();
    connected();
    const Timeline t = timeline(5 * kMilli, 40 * kMilli, 5 * kMilli);
    const ThreadReading r = client->run(t);
    expect_books_balance(r);
    EXPECT_EQ(r.outstanding + r.failed, 0u);
    EXPECT_EQ(r.sent_bytes, flows * sizeof(Hello) + r.planned * 100);
    EXPECT_EQ(r.received_bytes, flows * sizeof(Ready) + r.done * 10);
    // What was sent before the window and done in it, and the other way round: at most one a flow at either edge.
    EXPECT_LE(r.latency.count(), r.window_requests + flows);
    EXPECT_LE(r.window_requests, r.latency.count() + flows);
    EXPECT_GT(r.window_requests, 0u);
    EXPECT_TRUE(r.failures.empty());
    EXPECT_EQ(r.latency.clipped(), 0u);
    EXPECT_GE(r.window_from, t.warm_end);
    EXPECT_GE(r.window_to, t.measure_end);
  }
}

TEST_F(ClientThreadTest, MinSamplesExtendTheWindowNoFurtherThanItsLimit) {
  make();
  connected();
  Timeline t = timeline(kMilli, 20 * kMilli, kMilli);
  t.min_samples = UINT64_MAX;  // never enough
  t.measure_limit = t.warm_end + 150 * kMilli;
  const ThreadReading endless = client->run(t);
  EXPECT_GE(endless.window_to, t.measure_limit);
  expect_books_balance(endless);
  EXPECT_EQ(endless.outstanding, 0u);

  // Enough soon: one answer a turn, so that the window must grow a little, but not to its limit.
  make();
  connected();
  const Timeline later = [&] {
    Timeline l = timeline(kMilli, kMilli, kMilli);
    l.min_samples = 100;
    l.measure_limit = l.warm_end + kHangLimit;
    l.drain_limit = l.measure_limit + kHangLimit;
    return l;
  }();
  const ThreadReading soon = client->run(later);
  EXPECT_GE(soon.latency.count(), 100u);
  EXPECT_LT(soon.window_to, later.measure_limit);
}

TEST_F(ClientThreadTest, WithoutMinSamplesTheWindowEndsOnTime) {
  make();
  connected();
  driver->answers = [&](FlowId) { return false; };  // not one sample
  Timeline t = timeline(kMilli, 10 * kMilli, kMilli, 50 * kMilli);
  t.measure_limit = t.measure_end + kHangLimit;
  const ThreadReading r = client->run(t);
  EXPECT_LT(r.window_to, t.measure_limit);
  EXPECT_EQ(r.latency.count(), 0u);
}

TEST_F(ClientThreadTest, AServerThatDoesNotAnswerLeavesItsRequestsOutstanding) {
  load.streams = 3;
  make();
  connected();
  driver->answers = [](FlowId id) { return id != 1; };
  const ThreadReading r = client->run(timeline(kMilli, 10 * kMilli, kMilli, 50 * kMilli));
  EXPECT_EQ(r.outstanding, 1u);
  expect_books_balance(r);
  ASSERT_EQ(r.failures.size(), 1u);
  EXPECT_EQ(r.failures[0], "client flow 1: not drained within the time limit");
}

TEST_F(ClientThreadTest, AServerThatDoesNotCloseFailsNoRequest) {
  make();
  connected();
  driver->closes = [](FlowId) { return false; };
  const ThreadReading r = client->run(timeline(kMilli, 10 * kMilli, kMilli, 50 * kMilli));
  expect_books_balance(r);
  EXPECT_EQ(r.planned, r.done);
  EXPECT_EQ(r.failures.size(), 1u);
}

TEST_F(ClientThreadTest, AStreamWhoseBufferNeverComesBackIsOutstanding) {
  load.shape = Shape::stream;
  make();
  connected();
  int taken = 0;
  driver->takes = [&](FlowId) { return ++taken <= 10; };
  const ThreadReading r = client->run(timeline(kMilli, 10 * kMilli, kMilli, 50 * kMilli));
  expect_books_balance(r);
  EXPECT_EQ(r.outstanding, 1u);
  EXPECT_EQ(r.done, 10u);
  EXPECT_EQ(r.failures.size(), 1u);
}

TEST_F(ClientThreadTest, AFlowThatDiesFailsItsRequest) {
  for (Shape shape : {Shape::request_response, Shape::stream})
    for (Direction direction : {Direction::up, Direction::down}) {
      load.shape = shape;
      load.direction = direction;
      load.streams = 3;
      make();
      connected();
      const Timeline t = timeline(kMilli, 20 * kMilli, kMilli);
      bool killed = false;
      driver->answers = [&](FlowId id) {
        if (id == 2 && !killed && mono_now_ns() > t.warm_end) driver->kill(2), killed = true;
        return id != 2 || !killed;
      };
      if (shape == Shape::stream && direction == Direction::up) {  // no answers are asked for there
        driver->takes = [&](FlowId id) {
          if (id == 2 && !killed) driver->kill(2), killed = true;
          return id != 2;
        };
      }
      const ThreadReading r = client->run(t);
      expect_books_balance(r);
      EXPECT_EQ(r.failed, 1u);
      EXPECT_EQ(r.outstanding, 0u);
      ASSERT_EQ(r.failures.size(), 1u);
      EXPECT_EQ(r.failures[0], "client flow 2: killed by the test");
    }
}

TEST_F(ClientThreadTest, AServerThatHangsUpIsAFailure) {
  make();
  connected();
  driver->answers = [&](FlowId id) { return driver->close(id), false; };
  const ThreadReading r = client->run(timeline(kMilli, 10 * kMilli, kMilli));
  EXPECT_EQ(r.failed, 1u);
  expect_books_balance(r);
  ASSERT_EQ(r.failures.size(), 1u);
  EXPECT_EQ(r.failures[0], "client flow 0: the server closed the connection");
}

TEST_F(ClientThreadTest, WrongBytesAreSeenAtOnce) {
  for (Shape shape : {Shape::request_response, Shape::stream}) {
    load.shape = shape;
    load.direction = Direction::down;
    make();
    connected();
    driver->spoils = [](std::vector<std::byte>& bytes) { bytes[bytes.size() / 2] ^= std::byte{1}; };
    const ThreadReading r = client->run(timeline(kMilli, 10 * kMilli, kMilli));
    EXPECT_EQ(r.done, 0u);
    EXPECT_EQ(r.failed, 1u);
    expect_books_balance(r);
    EXPECT_EQ(r.latency.count(), 0u);
    ASSERT_EQ(r.failures.size(), 1u);
    EXPECT_EQ(r.failures[0], "client flow 0: received bytes differ from those sent");
  }
}

TEST_F(ClientThreadTest, MoreReplyThanAskedForIsAFailure) {
  make();
  load.reply_bytes = 7;  // the client asks for 7; the driver's server sends 10
  LoadThreadConfig config{load, 0, 1, &pattern, {}};
  client = std::make_unique<ClientThread>(*driver, config);
  connected();
  const ThreadReading r = client->run(timeline(kMilli, 10 * kMilli, kMilli));
  ASSERT_EQ(r.failures.size(), 1u);
  EXPECT_EQ(r.failures[0], "client flow 0: more reply bytes than asked for");
}

TEST_F(ClientThreadTest, AWrongGreetingEstablishesNothing) {
  load.streams = 2;
  make();
  driver->spoils = [](std::vector<std::byte>& bytes) { bytes[20] ^= std::byte{1}; };  // in the canary
  const ConnectOutcome outcome = connect();
  EXPECT_EQ(outcome.planned, 2u);
  EXPECT_EQ(outcome.established, 0u);
  EXPECT_EQ(outcome.failures, std::vector<std::string>(2, "the server's greeting is not the one expected"));
}

TEST_F(ClientThreadTest, RefusalsAndFailuresAreToldApart) {
  load.streams = 4;
  make();
  driver->accepts = [](FlowId id) { return id > 0; };
  ConnectOutcome outcome = connect();
  EXPECT_EQ(outcome.established, 3u);
  EXPECT_EQ(outcome.failures, std::vector<std::string>{"killed by the test"});
  EXPECT_TRUE(outcome.refusals.empty());

  make();
  driver->accepts = [](FlowId id) { return id > 0; };
  driver->refused = {{"reason", "expired"}, {"by", "peer"}};
  outcome = connect();
  EXPECT_EQ(outcome.established, 3u);
  EXPECT_TRUE(outcome.failures.empty());
  ASSERT_EQ(outcome.refusals.size(), 1u);
  EXPECT_EQ(outcome.refusals[0]["reason"], "expired");
}

TEST_F(ClientThreadTest, NoAnswerInTimeIsAFailure) {
  load.streams = 2;
  make();
  driver->answers = [](FlowId id) { return id == 0; };
  const ConnectOutcome outcome = connect(30 * kMilli);
  EXPECT_EQ(outcome.established, 1u);
  EXPECT_EQ(outcome.failures, std::vector<std::string>{"no answer in time"});
}

TEST_F(ClientThreadTest, TheFirstGoesAloneWhenAsked) {
  load.streams = 3;
  make();
  uint32_t most_before_first = 0;
  driver->answers = [&](FlowId id) {
    if (id == 0) most_before_first = std::max(most_before_first, driver->flows());
    return true;
  };
  EXPECT_EQ(client->connect(1, mono_now_ns() + kHangLimit, true).established, 3u);
  EXPECT_EQ(most_before_first, 1u);
}

}  // namespace
}  // namespace fsbl
