// What one load thread brings back from a round.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/json.h"
#include "harness/load/hello.h"
#include "harness/load/pattern.h"
#include "harness/stats/histogram.h"
#include "harness/transport/driver.h"

namespace fsbl {

// Absolute CLOCK_MONOTONIC times of this host. Each side starts its own timeline when told to go; the receiver's
// window lies inside the sender's activity because cool-down is longer than the skew between the two.
struct Timeline {
  Nanos start = 0, warm_end = 0, measure_end = 0, stop = 0;
  Nanos measure_limit = 0;       // request-response: the window may grow to here until min_samples are there
  uint64_t min_samples = 0;
  Nanos drain_limit = 0;         // after stop: outstanding requests and closes may take until here
};
Timeline make_timeline(const PhaseConfig& phases, Nanos start);

// What a load thread is given; flows are numbered over all threads of the round.
struct LoadThreadConfig {
  LoadConfig load;
  uint32_t first_flow = 0, flows = 1;
  const Pattern* pattern = nullptr;   // shared, read-only
  Canary canary{};
};

// Connections of one thread: what came of them.
struct ConnectOutcome {
  uint64_t planned = 0, established = 0;
  std::vector<Json> handshakes;       // FlowReport::handshake of each established flow that has one
  std::vector<Json> refusals;         // {reason, by, side, time, ...}
  std::vector<std::string> failures;  // what was no refusal: "connect: ECONNREFUSED", "no answer in time"
};

struct TcpSummary {                   // sums and medians over this thread's flows, from TCP_INFO (tcp(7))
  bool present = false;
  uint64_t retransmits = 0;           // in the window
  double rtt_us = 0;                  // medians at the window's end
  double cwnd_segments = 0, mss_bytes = 0;
  double send_buffer_bytes = 0;
  std::string congestion;
};

struct ThreadReading {
  Histogram latency;                  // ns, sent → done; request-response clients only
  Nanos window_from = 0, window_to = 0;                    // absolute
  uint64_t window_sent_bytes = 0, window_received_bytes = 0;  // payload bytes inside the window
  uint64_t window_requests = 0;       // completed (client) or answered (server) inside the window
  uint64_t window_cpu_ns = 0;         // CLOCK_THREAD_CPUTIME_ID over the window
  uint64_t sent_bytes = 0, received_bytes = 0;             // whole round, hello included
  uint64_t wire_out = 0, wire_in = 0;                      // TCP payload bytes, whole round
  uint64_t retransmitted_bytes = 0;                        // of wire_out, sent again (TCP_INFO)
  uint64_t records_out = 0, records_in = 0, key_updates_out = 0, key_updates_in = 0;
  Json engine;                        // RecordEngines::facts() of the thread, after its last record; or null
  uint64_t planned = 0, done = 0, failed = 0, outstanding = 0;   // operations of the whole round (accounting)
  std::vector<std::string> failures;  // one line a failed flow, bounded
  TcpSummary tcp;
};

// Adds up the threads of one worker; histograms are merged.
Json to_json(const std::vector<ThreadReading>& threads, Nanos round_start);
Json to_json(const std::vector<ConnectOutcome>& threads);

}  // namespace fsbl
