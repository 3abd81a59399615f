#include "harness/load/reading.h"

#include <algorithm>

#include "harness/stats/histogram_json.h"
#include "harness/stats/interval.h"

namespace fsbl {

// What a slow tunnel may still hold at the end: a hundred flows' send buffers at 0.2 Gbit/s take most of this.
constexpr Nanos kDrain = 20'000'000'000;

// More than the skew between the two sides' starts, and than the agents take to read their probes at the window's end.
constexpr Nanos kLeastCoolDown = 30'000'000;

Timeline make_timeline(const PhaseConfig& phases, Nanos start) {
  Timeline t;
  t.start = start;
  t.warm_end = start + phases.warm_up;
  t.measure_end = t.warm_end + phases.measure;
  t.measure_limit = std::max(t.measure_end, t.warm_end + phases.max_duration);
  t.min_samples = phases.min_samples;
  t.stop = t.measure_end + std::max(phases.cool_down, kLeastCoolDown);
  t.drain_limit = std::max(t.stop, t.measure_limit + phases.cool_down) + kDrain;
  return t;
}

// The threads of a worker share a device. What queue_* counts is a thread's own; everything else is the device's and is
// read by each thread: the one that ended last saw all of it.
static void add_engine(const Json& engine, Json& sum) {
  if (engine.is_null()) return;
  if (sum.is_null()) {
    sum = engine;
    return;
  }
  for (const auto& [name, value] : engine.at("counters").items()) {
    const uint64_t so_far = sum["counters"].value(name, uint64_t{0}), own = value.get<uint64_t>();
    sum["counters"][name] = name.starts_with("queue_") ? so_far + own : std::max(so_far, own);
  }
}

Json to_json(const std::vector<ThreadReading>& threads, Nanos round_start) {
  Json json = Json::object();
  Histogram latency;
  ThreadReading sum;
  sum.window_from = INT64_MAX;
  double bits_per_second = 0, requests_per_second = 0, sent_bits_per_second = 0;
  Json failures = Json::array(), tcp = Json::array();
  for (const ThreadReading& t : threads) {
    latency.merge(t.latency);
    sum.window_from = std::min(sum.window_from, t.window_from);
    sum.window_to = std::max(sum.window_to, t.window_to);
    const double seconds = static_cast<double>(t.window_to - t.window_from) / 1e9;
    if (seconds > 0) {
      bits_per_second += static_cast<double>(t.window_received_bytes) * 8 / seconds;
      sent_bits_per_second += static_cast<double>(t.window_sent_bytes) * 8 / seconds;
      requests_per_second += static_cast<double>(t.window_requests) / seconds;
    }
    sum.window_sent_bytes += t.window_sent_bytes;
    sum.window_received_bytes += t.window_received_bytes;
    sum.window_requests += t.window_requests;
    sum.window_cpu_ns += t.window_cpu_ns;
    sum.sent_bytes += t.sent_bytes;
    sum.received_bytes += t.received_bytes;
    sum.wire_out += t.wire_out;
    sum.wire_in += t.wire_in;
    sum.retransmitted_bytes += t.retransmitted_bytes;
    sum.records_out += t.records_out;
    sum.records_in += t.records_in;
    sum.key_updates_out += t.key_updates_out;
    sum.key_updates_in += t.key_updates_in;
    add_engine(t.engine, sum.engine);
    sum.planned += t.planned;
    sum.done += t.done;
    sum.failed += t.failed;
    sum.outstanding += t.outstanding;
    for (const auto& text : t.failures) failures.push_back(text);
    if (t.tcp.present)
      tcp.push_back({{"retransmits", t.tcp.retransmits}, {"rtt_us", t.tcp.rtt_us}, 
                     {"cwnd_segments", t.tcp.cwnd_segments}, {"mss_bytes", t.tcp.mss_bytes},
                     {"send_buffer_bytes", t.tcp.send_buffer_bytes}, {"congestion", t.tcp.congestion}});
  }
  json["threads"] = threads.size();
  json["window_from_ns"] = threads.empty() ? 0 : sum.window_from - round_start;
  json["window_to_ns"] = sum.window_to ? sum.window_to - round_start : 0;
  json["window_sent_bytes"] = sum.window_sent_bytes;
  json["window_received_bytes"] = sum.window_received_bytes;
  json["window_requests"] = sum.window_requests;
  json["window_cpu_ns"] = sum.window_cpu_ns;
  json["received_bps"] = bits_per_second;
  json["sent_bps"] = sent_bits_per_second;
  json["requests_per_s"] = requests_per_second;
  json["sent_bytes"] = sum.sent_bytes;
  json["received_bytes"] = sum.received_bytes;
  json["wire_out"] = sum.wire_out;
  json["wire_in"] = sum.wire_in;
  json["retransmitted_bytes"] = sum.retransmitted_bytes;
  json["records_out"] = sum.records_out;
  json["records_in"] = sum.records_in;
  json["key_updates_out"] = sum.key_updates_out;
  json["key_updates_in"] = sum.key_updates_in;
  if (!sum.engine.is_null()) json["engine"] = sum.engine;
  json["planned"] = sum.planned;
  json["done"] = sum.done;
  json["failed"] = sum.failed;
  json["outstanding"] = sum.outstanding;
  json["failures"] = failures;
  json["tcp"] = tcp;
  if (latency.count() > 0) json["latency"] = to_json(latency);
  return json;
}

Json to_json(const std::vector<ConnectOutcome>& threads) {
  Json json = {{"planned", 0}, {"established", 0}, {"handshakes", Json::array()}, {"refusals", Json::array()},
               {"failures", Json::array()}};
  uint64_t planned = 0, established = 0;
  for (const ConnectOutcome& t : threads) {
    planned += t.planned;
    established += t.established;
    for (const Json& h : t.handshakes) json["handshakes"].push_back(h);
    for (const Json& r : t.refusals) json["refusals"].push_back(r);
    for (const auto& f : t.failures) json["failures"].push_back(f);
  }
  json["planned"] = planned;
  json["established"] = established;
  return json;
}

}  // namespace fsbl
