// From what the two agents reported to the round's series, accounting, flags and path. Pure.
#include <fmt/format.h>

#include <cmath>

#include "harness/run/round_runner.h"
#include "harness/stats/histogram_json.h"

namespace fsbl {
namespace {

constexpr double kStealLimit = 0.02;

uint64_t count(const Json& json, const char* key) { return json.value(key, uint64_t{0}); }
double number(const Json& json, const char* key) { return json.value(key, 0.0); }

class Reader {
 public:
  Reader(const Cell& cell, const BothSides<Json>& connected, const BothSides<Json>& measured, Round& round)
      : cell_(cell), load_(cell.config.load), connected_(connected), measured_(measured), round_(round),
        one_sided_(measured[1].is_null()) {}

  void read() {
    for (size_t side = 0; side < (one_sided_ ? 1u : 2u); ++side) {
      read_cpu(side);
      read_tcp(side);
      read_perf(side);
      read_layers(side);
      check_side(side);
    }
    read_load();
    read_accounting();
    check_delivery();
    check_handshakes();
    round_.path = combine(round_.layers);
    if (round_.path == Verdict::contradicted) flag("path-contradicted", "see path.layers", "proved");
    if (round_.path == Verdict::unproven) flag("path-unproven", "see path.layers", "proved", false);
    keep_details();
    for (const Flag& f : round_.flags)
      if (f.invalidates) round_.status = "invalid";
  }

 private:
  bool wants(const char* probe) const {
    for (const auto& name : cell_.config.probes)
      if (name == probe) return true;
    return false;
  }
  const Json& reading(size_t side) const { return measured_[side]["reading"]; }
  static const char* side_name(size_t side) { return side == 0 ? "client" : "server"; }

  void flag(const char* code, Json value, Json limit, bool invalidates = true) {
    round_.flags.push_back({code, std::move(value), std::move(limit), invalidates});
  }

  Series& add(const char* metric, const char* source, std::string side, const char* unit, const char* better, double value) {
    Series series;
    series.metric = metric;
    series.source = source;
    series.side = std::move(side);
    series.unit = unit;
    series.better = better;
    series.value = value;
    round_.series.push_back(std::move(series));
    return round_.series.back();
  }

  void read_load() {
    const Json& client = reading(0);
    if (load_.shape == Shape::request_response) {
      if (wants("latency")) read_latency(client);
      add("requests_per_s", "worker", "client", "1/s", "higher", number(client, "requests_per_s")).basis = "done";
      if (count(client, "window_requests") == 0) flag("no-samples", 0, ">= 1");
      return;
    }
    const size_t receiver = load_.direction == Direction::down || one_sided_ ? 0 : 1;
    const bool null_up = one_sided_ && load_.direction == Direction::up;  // in process: taken by the callee at once
    const double bps = number(reading(receiver), null_up ? "sent_bps" : "received_bps");
    Series& series = add("throughput", "worker", side_name(receiver), "bit/s", "higher", bps);
    series.basis = "received";
    series.clock = "CLOCK_MONOTONIC";
    series.from = "window opens at the receiver";
    series.to = "window closes at the receiver";
    if (bps <= 0) flag("no-samples", 0, "> 0 bytes in the window");
  }

  void read_latency(const Json& client) {
    const auto encoded = client.find("latency");
    if (encoded == client.end()) return round_.missing.push_back({"latency", "client", "no request was sent and answered in the window"});
    auto histogram = histogram_from_json(*encoded);
    if (!histogram) return flag("latency-unreadable", histogram.error().message(), "a histogram");
    Series series;
    series.metric = "latency";
    series.basis = "sent";
    series.source = "worker";
    series.clock = "CLOCK_MONOTONIC";
    series.from = "before the first byte is handed to the transport";
    series.to = "whole reply authenticated by the client";
    series.side = "client";
    series.unit = "ns";
    series.better = "lower";
    series.distribution = std::move(*histogram);
    round_.series.push_back(std::move(series));
  }

  // CPU of the load threads (their own clocks, their own window) plus the tunnel daemons' (the agent's window).
  void read_cpu(size_t side) {
    if (!wants("cpu")) return;
    const Json& r = reading(side);
    const Json cpu = measured_[side].value("cpu", Json::object());
    const double window = number(r, "window_to_ns") - number(r, "window_from_ns");
    const double host_window = number(cpu, "window_ns");
    if (window <= 0) return;
    double busy = number(r, "window_cpu_ns") / (window * std::max(1.0, number(r, "threads")));
    double cpu_ns = number(r, "window_cpu_ns");
    if (const auto tunnel = cpu.find("tunnel_cpu_ns"); tunnel != cpu.end() && tunnel->is_number() && host_window > 0)
      cpu_ns += tunnel->get<double>() * window / host_window;
    add("load_thread_busy_ratio", "worker", side_name(side), "1", "", busy);
    if (load_.shape == Shape::request_response) {
      if (const double n = number(r, "window_requests"); n > 0)
        add("cpu_ns_per_request", "worker", side_name(side), "ns", "lower", cpu_ns / n);
    }
    if (const double bytes = number(r, "window_sent_bytes") + number(r, "window_received_bytes"); bytes > 0)
      add("cpu_ns_per_byte", "worker", side_name(side), "ns/B", "lower", cpu_ns / bytes);
    if (const double rss = number(r, "max_rss_bytes"); rss > 0) add("max_rss", "worker", side_name(side), "B", "lower", rss);
    if (host_window <= 0) return;
    const size_t cpus = side == 0 ? cell_.config.placement.client.size() : cell_.config.placement.server.size();
    for (const char* kind : {"steal", "softirq"}) {
      const auto value = cpu.find(std::string(kind) + "_ns");
      if (value == cpu.end() || !value->is_number()) continue;
      const double ratio = value->get<double>() / (host_window * static_cast<double>(std::max<size_t>(1, cpus)));
      add(kind == std::string("steal") ? "steal_ratio" : "softirq_ratio", "procfs", side_name(side), "1", "lower", ratio);
      if (kind == std::string("steal") && ratio > kStealLimit)
        flag("steal", std::round(ratio * 1e4) / 1e4, kStealLimit, false);
    }
  }

  void read_tcp(size_t side) {
    if (!wants("tcp_info") || one_sided_) return;
    double retransmits = 0, rtt = 0, cwnd = 0;
    const Json tcp = reading(side).value("tcp", Json::array());
    if (tcp.empty()) return round_.missing.push_back({"tcp_info", side_name(side), "no socket answered TCP_INFO"});
    for (const Json& thread : tcp) {
      retransmits += number(thread, "retransmits");
      rtt = std::max(rtt, number(thread, "rtt_us"));
      cwnd = std::max(cwnd, number(thread, "cwnd_segments"));
    }
    add("retransmits", "tcp_info", side_name(side), "1", "lower", retransmits);
    add("tcp_rtt", "tcp_info", side_name(side), "us", "lower", rtt);
    add("cwnd", "tcp_info", side_name(side), "segments", "", cwnd);
  }

  void read_perf(size_t side) {
    for (const Json& counter : measured_[side].value("perf", Json::array()))
      add(("perf." + counter.value("name", std::string("?"))).c_str(), "perf", side_name(side), "1", "", number(counter, "value"));
    for (const Json& entry : measured_[side].value("missing", Json::array()))
      round_.missing.push_back({"perf." + entry.value("name", std::string("?")), side_name(side), entry.value("reason", std::string("?"))});
  }

  void read_layers(size_t side) {
    for (const Json& layer : measured_[side].value("layers", Json::array())) round_.layers.push_back(layer_proof_from_json(layer));
  }

  // Flow failures, and the interface's counters against what the sockets moved.
  void check_side(size_t side) {
    const Json& r = reading(side);
    if (const Json failures = r.value("failures", Json::array()); !failures.empty())
      flag("flow-failed", failures[0], fmt::format("{} failures", failures.size()));
    const Json interface = measured_[side].value("interface", Json::object()).value("difference", Json::object());
    if (interface.empty()) return;
    for (const char* way : {"tx", "rx"}) {
      const double bytes = number(interface, (std::string(way) + "_bytes").c_str());
      const double packets = number(interface, (std::string(way) + "_packets").c_str());
      const bool out = way == std::string("tx");
      const double moved = number(r, out ? "wire_out" : "wire_in");
      const double again = number(reading(out || one_sided_ ? side : 1 - side), "retransmitted_bytes");
      // Each packet adds headers: Ethernet, IP and TCP at most 134 bytes; a tunnel's own come on top (WireGuard: 32
      // and its padding, UDP and IP again: at most 100). What TCP sent again passed the interface again.
      const double most = moved + again + packets * 240 + 65536;
      if (bytes < moved || bytes > most)
        flag("bytes-unreconciled", fmt::format("{} {}: interface {:.0f} B", side_name(side), way, bytes),
             fmt::format("{:.0f} to {:.0f} B", moved, most));
    }
  }

  void read_accounting() {
    const Json& client = reading(0);
    Accounting& a = round_.accounting;
    a.planned = count(client, "planned");
    a.done = count(client, "done");
    a.failed = count(client, "failed");
    a.outstanding_at_end = count(client, "outstanding");
    if (load_.shape == Shape::stream && load_.direction == Direction::down) {
      // In process nobody counts the other side's writes: they are as many as its bytes make.
      const uint64_t taken = one_sided_ ? count(client, "received_bytes") / load_.payload_bytes : 0;
      a.planned += one_sided_ ? taken : count(reading(1), "planned");
      a.done += one_sided_ ? taken : count(reading(1), "done");
    }
    if (a.planned != a.done + a.failed + a.outstanding_at_end + a.unsent)
      flag("conservation", fmt::format("{} planned", a.planned), fmt::format("{} accounted for", a.done + a.failed + a.outstanding_at_end + a.unsent));
    if (a.outstanding_at_end > 0) flag("not-drained", a.outstanding_at_end, 0);
  }

  // Everything sent arrived: the two applications' byte counts are equal, both ways.
  void check_delivery() {
    if (one_sided_ || !reading(0).value("failures", Json::array()).empty() || !reading(1).value("failures", Json::array()).empty()) return;
    for (size_t sender : {0u, 1u}) {
      const uint64_t sent = count(reading(sender), "sent_bytes"), received = count(reading(1 - sender), "received_bytes");
      if (sent != received) flag("bytes-lost", fmt::format("{} received", received), fmt::format("{} sent by the {}", sent, side_name(sender)));
    }
  }

  void check_handshakes() {
    if (one_sided_) return;
    uint64_t resumed = 0, all = 0;
    for (const Json& handshake : connected_[0].value("handshakes", Json::array())) {
      ++all;
      resumed += handshake.value("resumed", false);
    }
    if (resumed > 0 && !cell_.config.tls.resumption) flag("silent-resumption", resumed, 0);
    if (all > 0) {
      Series& series = add("resumed_ratio", "worker", "client", "1", "", static_cast<double>(resumed) / static_cast<double>(all));
      series.basis = "handshakes";
    }
  }

  void keep_details() {
    for (size_t side = 0; side < (one_sided_ ? 1u : 2u); ++side) {
      Json kept = measured_[side];
      kept.erase("layers");
      if (const Json cpu = kept.value("cpu", Json::object()); cpu.contains("window_ns")) kept["window_ns"] = cpu["window_ns"];
      kept["reading"].erase("latency");
      const Json handshakes = connected_[side].value("handshakes", Json::array());
      if (!handshakes.empty())
        kept["negotiated"] = {{"version", handshakes[0].value("version", "")}, {"cipher", handshakes[0].value("cipher", "")},
                             {"group", handshakes[0].value("group", "")}, {"signature", handshakes[0].value("signature", "")}};
      round_.details[side_name(side)] = std::move(kept);
    }
  }

  const Cell& cell_;
  const LoadConfig& load_;
  const BothSides<Json>& connected_;
  const BothSides<Json>& measured_;
  Round& round_;
  bool one_sided_;
};

}  // namespace

void read_round(const Cell& cell, const BothSides<Json>& connected, const BothSides<Json>& measured, Round& round) {
  Reader(cell, connected, measured, round).read();
}

}  // namespace fsbl
