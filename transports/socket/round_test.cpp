// Whole rounds over loopback, over every composition: the load threads of harness/load on the real drivers. Exact
// counts, both shapes, odd sizes, few and many flows, slow and stuck servers.
#include <sys/socket.h>

#include "transports/contract_round.h"

namespace fsbl::contract {
namespace {

constexpr Nanos kMilli = 1'000'000;

class Rounds : public testing::TestWithParam<Composition> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
    config.transport = GetParam();
    config.load.verify = Verify::full;
  }
  // Short phases: warm-up, window, cool-down.
  static Timeline short_timeline() { return timeline_of(10 * kMilli, 60 * kMilli, 20 * kMilli); }
  // The same, but the window grows until so many requests were answered in it, however slow this host is now.
  static Timeline until_samples(uint64_t samples) {
    Timeline t = short_timeline();
    t.min_samples = samples;
    t.measure_limit = t.measure_end + kHangLimit;
    t.drain_limit = t.measure_limit + kHangLimit;
    return t;
  }

  CellConfig config;
};

TEST_P(Rounds, RequestsAndRepliesOfAnySizeAreCountedExactly) {
  struct { uint64_t payload, reply; } const sizes[] = {
      {1, 1}, {64, 64}, {65537, 64}, {100, 65537}, {3 << 20, 1}, {1000, (1 << 20) + 3}, {262'145, 262'145}};
  for (const auto& size : sizes) {
    config.load.payload_bytes = size.payload;
    config.load.reply_bytes = size.reply;
    LoadRound round(config);
    round.run_all(until_samples(1));
    const ThreadReading& client = round.reading;
    const ThreadReading& server = round.served;
    expect_books_balance(client, server);
    EXPECT_GT(client.done, 0u);
    EXPECT_EQ(client.done, server.done);
    EXPECT_EQ(client.sent_bytes, sizeof(Hello) + client.done * size.payload);
    EXPECT_EQ(client.received_bytes, sizeof(Ready) + client.done * size.reply);
    EXPECT_LE(client.latency.count(), client.window_requests + 1);
    EXPECT_LE(client.window_requests, client.latency.count() + 1);
    EXPECT_TRUE(client.tcp.present);
    EXPECT_FALSE(client.tcp.congestion.empty());
    EXPECT_GT(client.window_cpu_ns, 0u);
  }
}

TEST_P(Rounds, ManyFlowsAndBothWaitModes) {
  for (uint32_t flows : {1u, 10u, 100u})
    for (WaitMode wait : {WaitMode::block, WaitMode::busy}) {
      config.load.streams = flows;
      config.load.wait = wait;
      config.load.payload_bytes = 5000;
      LoadRound round(config);
      round.run_all(until_samples(1));
      expect_books_balance(round.reading, round.served);
      EXPECT_EQ(round.reading.done, round.served.done);
      EXPECT_GE(round.reading.done, flows);
      EXPECT_LE(round.reading.latency.count(), round.reading.window_requests + flows);
      EXPECT_LE(round.reading.window_requests, round.reading.latency.count() + flows);
      const bool records = find_session(config.transport.session)->has_records;
      EXPECT_EQ(round.connected.handshakes.size(), records ? flows : 0);
      EXPECT_EQ(round.accepted.handshakes.size(), records ? flows : 0);
      EXPECT_EQ(round.reading.records_out, round.served.records_in);
      EXPECT_EQ(round.reading.records_in, round.served.records_out);
      EXPECT_EQ(round.reading.records_out > 0, records);
    }
}

TEST_P(Rounds, StreamsUpAndDown) {
  uint64_t window_bytes = 0;  // of all rounds: a single window may find this host busy
  for (Direction direction : {Direction::up, Direction::down})
    for (uint32_t flows : {1u, 10u, 100u})
      for (uint64_t payload : {uint64_t{1000}, uint64_t{65537}, uint64_t{1} << 20}) {
        config.load.shape = Shape::stream;
        config.load.direction = direction;
        config.load.streams = flows;
        config.load.payload_bytes = payload;
        LoadRound round(config);
        round.run_all(short_timeline());
        expect_books_balance(round.reading, round.served);
        const bool up = direction == Direction::up;
        const ThreadReading& sender = up ? round.reading : round.served;
        const ThreadReading& receiver = up ? round.served : round.reading;
        EXPECT_GE(receiver.received_bytes, flows * (sizeof(Hello) + std::min<uint64_t>(payload, Pattern::kMaxChunk)));
        EXPECT_EQ(receiver.sent_bytes, flows * sizeof(Hello)) << "nothing but greetings goes the other way";
        EXPECT_GE(sender.sent_bytes, sender.window_sent_bytes);
        EXPECT_EQ(round.reading.latency.count(), 0u);
        window_bytes += receiver.window_received_bytes;
      }
  EXPECT_GT(window_bytes, 0u);
}

TEST_P(Rounds, ResumedFlowsCarryTheSameLoad) {
  config.tls.resumption = true;
  config.load.streams = 8;
  LoadRound round(config);
  round.run_all(short_timeline());
  expect_books_balance(round.reading, round.served);
  int resumed = 0;
  for (const Json& handshake : round.connected.handshakes) resumed += handshake["resumed"].get<bool>();
  EXPECT_EQ(resumed, round.connected.handshakes.empty() ? 0 : 7);
}

// Passes everything on, and sleeps between what arrived and its being told.
class Slow final : public Driver {
 public:
  Slow(std::unique_ptr<Driver> driver, Nanos pause) : driver_(std::move(driver)), pause_(pause) {}
  Expected<uint16_t> listen(uint32_t flows, uint16_t port) override { return driver_->listen(flows, port); }
  Expected<> open(uint32_t count, uint16_t port) override { return driver_->open(count, port); }
  Submit submit(FlowId flow, std::span<const std::byte> data) noexcept override { return driver_->submit(flow, data); }
  size_t poll(std::span<Event> events, Nanos deadline) noexcept override {
    const size_t n = driver_->poll(events, deadline);
    const timespec pause{0, pause_};
    if (n > 0) nanosleep(&pause, nullptr);
    return n;
  }
  std::span<const std::span<const std::byte>> peek(FlowId flow) noexcept override { return driver_->peek(flow); }
  void finish(FlowId flow) noexcept override { driver_->finish(flow); }
  WireOffsets wire(FlowId flow) const noexcept override { return driver_->wire(flow); }
  uint32_t flows() const override { return driver_->flows(); }
  FlowReport report(FlowId flow) const override { return driver_->report(flow); }
  Json refusal(FlowId flow) const override { return driver_->refusal(flow); }
  std::string failure(FlowId flow) const override { return driver_->failure(flow); }
  int socket(FlowId flow) const override { return driver_->socket(flow); }

 private:
  std::unique_ptr<Driver> driver_;
  Nanos pause_;
};

TEST_P(Rounds, ASlowServerShowsInTheLatency) {
  LoadRound round(config);
  round.drivers[1] = std::make_unique<Slow>(std::move(round.drivers[1]), 20 * kMilli);
  round.run_all(until_samples(3));
  expect_books_balance(round.reading, round.served);
  ASSERT_GT(round.reading.latency.count(), 0u);
  EXPECT_GE(round.reading.latency.min(), 20 * kMilli);
}

TEST_P(Rounds, ASlowReceiverLosesNothingOfAStream) {
  config.load.shape = Shape::stream;
  for (Direction direction : {Direction::up, Direction::down}) {
    config.load.direction = direction;
    LoadRound round(config);
    auto& receiver = round.drivers[direction == Direction::up ? 1 : 0];
    receiver = std::make_unique<Slow>(std::move(receiver), 2 * kMilli);
    round.run_all(short_timeline());
    expect_books_balance(round.reading, round.served);
  }
}

TEST_P(Rounds, AServerThatNeverReadsEndsAtTheDrainLimit) {
  for (Shape shape : {Shape::request_response, Shape::stream}) {
    config.load.shape = shape;
    config.load.payload_bytes = 64 << 20;  // more than the kernel takes
    config.load.streams = 3;
    LoadRound round(config);
    round.connect();
    ASSERT_EQ(round.connected.established, 3u);
    Timeline t = timeline_of(kMilli, 10 * kMilli, kMilli);
    t.drain_limit = t.stop + 100 * kMilli;
    round.reading = round.client->run(t);  // the server's thread never runs
    EXPECT_GE(mono_now_ns(), t.drain_limit);
    const ThreadReading& r = round.reading;
    EXPECT_EQ(r.outstanding, 3u);
    EXPECT_EQ(r.failed, 0u);
    EXPECT_EQ(r.planned, r.done + r.outstanding);
    EXPECT_EQ(r.latency.count(), 0u);
    EXPECT_EQ(r.failures.size(), 3u);
  }
}

TEST_P(Rounds, AClientThatVanishesIsAFailureOnTheServer) {
  config.load.streams = 2;
  LoadRound round(config);
  round.connect();
  ASSERT_EQ(round.accepted.established, 2u);
  const linger reset{1, 0};
  for (FlowId id : {0u, 1u}) setsockopt(round.drivers[0]->socket(id), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  round.drivers[0].reset();
  const Timeline t = timeline_of(kMilli, 10 * kMilli, kMilli);
  const ThreadReading served = round.server->run(t);
  EXPECT_LT(mono_now_ns(), t.drain_limit);
  EXPECT_EQ(served.failed, 2u);
  EXPECT_EQ(served.planned, served.done + served.failed + served.outstanding);
  ASSERT_EQ(served.failures.size(), 2u);
  EXPECT_NE(served.failures[0].find("ECONNRESET"), std::string::npos) << served.failures[0];
  EXPECT_LE(served.window_from, served.window_to);
  EXPECT_GE(served.window_from, t.start) << "a window that never opened is empty, not at the beginning of time";
}

TEST_P(Rounds, BytesThatDifferAreNeverAnswered) {
  for (Verify verify : {Verify::full, Verify::sampled}) {
    config.load.verify = verify;
    LoadRound round(config);
    round.patterns[0] = Pattern(kPatternSeed + 1);
    round.connect();
    ASSERT_EQ(round.connected.established, 1u);
    Timeline t = short_timeline();
    t.drain_limit = t.stop + 200 * kMilli;
    round.run(t);
    ASSERT_EQ(round.served.failures.size(), 1u);
    EXPECT_EQ(round.served.failures[0], "server flow 0: received bytes differ from those sent");
    EXPECT_EQ(round.served.done, 0u);
    EXPECT_EQ(round.reading.done, 0u);
    EXPECT_EQ(round.reading.outstanding + round.reading.failed, 1u);
  }
}

TEST_P(Rounds, AcceptEndsAtItsDeadline) {
  config.load.streams = 3;
  LoadRound round(config);
  const LoadThreadConfig load = {config.load, 0, 3, &round.patterns[1], {}};
  ServerThread server(*round.drivers[1], load);
  ASSERT_TRUE(round.drivers[1]->listen(3, 0));
  const ConnectOutcome outcome = server.accept(mono_now_ns() + 20 * kMilli);
  EXPECT_EQ(outcome.planned, 3u);
  EXPECT_EQ(outcome.established, 0u);
  EXPECT_EQ(outcome.failures, std::vector<std::string>(3, "no connection in time"));
}

INSTANTIATE_TEST_SUITE_P(All, Rounds, testing::ValuesIn(compositions()),
                         [](const auto& info) { return test_name(info.param.name); });

}  // namespace
}  // namespace fsbl::contract
