// Session `null`: the harness alone, with the same load threads and the same books.
#include <gtest/gtest.h>

#include "harness/load/client.h"
#include "harness/transport/registry.h"

namespace fsbl {
namespace {

constexpr Nanos kMilli = 1'000'000;
constexpr Nanos kHangLimit = 60'000 * kMilli;

class NullSession : public testing::Test {
 protected:
  NullSession() {
    config.transport = {"null", "none", "null", ""};
    config.load.verify = Verify::full;
  }
  std::unique_ptr<Driver> make() {
    DriverContext context;
    context.config = config;
    context.secrets = {{"pattern_seed", 3}};
    return find_session("null")->make_driver(context).value();
  }
  ThreadReading round(uint64_t client_seed = 3) {
    driver = make();
    const Pattern pattern(client_seed);
    ClientThread client(*driver, {config.load, 0, config.load.streams, &pattern, {}});
    const ConnectOutcome outcome = client.connect(0, mono_now_ns() + kHangLimit, false);
    EXPECT_EQ(outcome.established, config.load.streams) << to_json({outcome});
    Timeline t;
    t.start = mono_now_ns();
    t.warm_end = t.start + 2 * kMilli;
    t.measure_end = t.measure_limit = t.warm_end + 30 * kMilli;
    t.stop = t.measure_end + kMilli;
    t.drain_limit = t.stop + kHangLimit;
    return client.run(t);
  }

  CellConfig config;
  std::unique_ptr<Driver> driver;
};

TEST_F(NullSession, RequestsOfAnySizeOverManyFlows) {
  for (uint32_t flows : {1u, 10u, 100u, 1000u})
    for (uint64_t payload : {uint64_t{1}, uint64_t{65537}, uint64_t{3} << 20}) {
      config.load.streams = flows;
      config.load.payload_bytes = payload;
      config.load.reply_bytes = payload == 1 ? 300'000 : 64;
      const ThreadReading r = round();
      EXPECT_EQ(r.planned, r.done);
      EXPECT_EQ(r.failed + r.outstanding, 0u);
      EXPECT_GE(r.done, flows) << "some flow never had its turn";
      EXPECT_EQ(r.sent_bytes, flows * sizeof(Hello) + r.done * payload);
      EXPECT_EQ(r.received_bytes, flows * sizeof(Ready) + r.done * config.load.reply_bytes);
      EXPECT_EQ(r.wire_out, r.sent_bytes);
      EXPECT_EQ(r.wire_in, r.received_bytes);
      EXPECT_LE(r.latency.count(), r.window_requests + flows);
      EXPECT_LE(r.window_requests, r.latency.count() + flows);
      EXPECT_TRUE(r.failures.empty()) << r.failures[0];
      EXPECT_FALSE(r.tcp.present);
    }
}

TEST_F(NullSession, StreamsBothWays) {
  config.load.shape = Shape::stream;
  for (Direction direction : {Direction::up, Direction::down})
    for (uint32_t flows : {1u, 10u, 100u}) {
      config.load.direction = direction;
      config.load.streams = flows;
      const ThreadReading r = round();
      EXPECT_EQ(r.planned, r.done);
      EXPECT_EQ(r.failed + r.outstanding, 0u);
      EXPECT_TRUE(r.failures.empty());
      const bool up = direction == Direction::up;
      EXPECT_GT(up ? r.window_sent_bytes : r.window_received_bytes, 0u);
      EXPECT_EQ(up ? r.received_bytes : r.sent_bytes, flows * sizeof(Ready));
    }
}

TEST_F(NullSession, WrongBytesAreRefusedHereToo) {
  const ThreadReading r = round(4);
  EXPECT_EQ(r.done, 0u);
  ASSERT_EQ(r.failures.size(), 1u);
  EXPECT_EQ(r.failures[0], "client flow 0: received bytes differ from those sent");
}

TEST_F(NullSession, HasNoServerSideAndNoHandshake) {
  driver = make();
  EXPECT_FALSE(driver->listen(1, 0));
  EXPECT_TRUE(driver->open(2, 0));
  EXPECT_EQ(driver->flows(), 2u);
  EXPECT_TRUE(driver->report(0).handshake.is_null());
  EXPECT_TRUE(driver->refusal(0).is_null());
  EXPECT_EQ(driver->socket(0), -1);
  EXPECT_TRUE(find_session("null")->in_process);
}

}  // namespace
}  // namespace fsbl
