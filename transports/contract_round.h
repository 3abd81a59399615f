// For tests: a round as two workers run it (harness/load's client and server threads), in one process.
#pragma once
#include <optional>
#include <thread>

#include "harness/load/client.h"
#include "harness/load/server.h"
#include "transports/contract_pair.h"

namespace fsbl::contract {

constexpr uint64_t kPatternSeed = 99;

class LoadRound {
 public:
  // config.load.streams flows; with resumption one goes ahead.
  explicit LoadRound(const CellConfig& config, const std::string& address = "127.0.0.1")
      : config(config), secrets(make_secrets(config)), patterns{Pattern(kPatternSeed), Pattern(kPatternSeed)} {
    for (Role role : kRoles) drivers[of(role)] = make_driver(config, role, address, secrets[of(role)]);
  }

  // Connects and accepts, each on a thread of its own.
  void connect() {
    const Canary canary = {'c', 'a', 'n', 'a', 'r', 'y'};
    client.emplace(*drivers[0], LoadThreadConfig{config.load, 0, config.load.streams, &patterns[0], canary});
    server.emplace(*drivers[1], LoadThreadConfig{config.load, 0, config.load.streams, &patterns[1], canary});
    const uint16_t port = drivers[1]->listen(config.load.streams, 0).value();
    std::thread accepting([&] { accepted = server->accept(mono_now_ns() + kHangLimit); });
    connected = client->connect(port, mono_now_ns() + kHangLimit, config.tls.resumption);
    accepting.join();
  }
  void run(const Timeline& timeline) {
    std::thread serving([&] { served = server->run(timeline); });
    reading = client->run(timeline);
    serving.join();
  }
  // Every flow up, and a clean run.
  void run_all(const Timeline& timeline) {
    connect();
    ASSERT_EQ(connected.established, config.load.streams) << to_json({connected, accepted});
    ASSERT_EQ(accepted.established, config.load.streams) << to_json({connected, accepted});
    run(timeline);
    for (const auto& failures : {connected.failures, accepted.failures, reading.failures, served.failures})
      EXPECT_EQ(failures, std::vector<std::string>());
  }

  CellConfig config;
  BothRoles<Json> secrets;
  BothRoles<Pattern> patterns;                 // the same, unless a test wants them to differ
  BothRoles<std::unique_ptr<Driver>> drivers;  // may be wrapped before connect()
  std::optional<ClientThread> client;
  std::optional<ServerThread> server;
  ConnectOutcome connected, accepted;
  ThreadReading reading, served;
};

inline Timeline timeline_of(Nanos warm_up, Nanos measure, Nanos cool_down) {
  PhaseConfig phases;
  phases.warm_up = warm_up;
  phases.measure = measure;
  phases.cool_down = cool_down;
  return make_timeline(phases, mono_now_ns());
}

// What holds of every clean round, whatever its load.
inline void expect_books_balance(const ThreadReading& client, const ThreadReading& server) {
  EXPECT_EQ(client.planned, client.done + client.failed + client.outstanding);
  EXPECT_EQ(server.planned, server.done + server.failed + server.outstanding);
  EXPECT_EQ(client.failed + client.outstanding + server.failed + server.outstanding, 0u);
  EXPECT_EQ(client.sent_bytes, server.received_bytes);
  EXPECT_EQ(client.received_bytes, server.sent_bytes);
  EXPECT_EQ(client.wire_out, server.wire_in);
  EXPECT_EQ(client.wire_in, server.wire_out);
  for (const ThreadReading* reading : {&client, &server}) {
    EXPECT_LE(reading->window_sent_bytes, reading->sent_bytes);
    EXPECT_LE(reading->window_received_bytes, reading->received_bytes);
    EXPECT_LE(reading->window_from, reading->window_to);
  }
}

}  // namespace fsbl::contract
