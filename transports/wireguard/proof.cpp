#include "transports/wireguard/proof.h"

#include <algorithm>
#include <optional>

namespace fsbl::wireguard {
namespace {

// What an idle tunnel sends by itself: 148 + 92 + 32 bytes of handshake every two minutes, for half an hour.
constexpr uint64_t kIdleBytes = 4096;

std::optional<uint64_t> find(const Counters& counters, std::string_view name) {
  const auto at =
      std::find_if(counters.begin(), counters.end(), [&](const auto& c) { return c.first == name; });
  return at == counters.end() ? std::nullopt : std::optional(at->second);
}

Json number_or_null(std::optional<uint64_t> value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

LayerProof prove_by_counters(const Claim& claim, const Counters& before, const Counters& after,
                             const Traffic& traffic) {
  LayerProof proof{"tunnel",          claim.side, claim.claimed,      {},
                   Verdict::unproven, claim.kind, claim.device_class, {}};
  const auto verdict = [&](Verdict verdict, std::string witnessed) {
    proof.verdict = verdict;
    proof.witnessed = std::move(witnessed);
    return proof;
  };
  const auto row = [&](const char* counter, std::string expected, const char* unit) {
    proof.evidence.push_back({claim.source, counter, number_or_null(find(before, counter)),
                              number_or_null(find(after, counter)), std::move(expected), unit});
  };
  row("tx_bytes", ">= " + std::to_string(traffic.sent_bytes), "B");
  row("rx_bytes", ">= " + std::to_string(traffic.received_bytes), "B");
  row("last_handshake_time_sec", "> 0", "s");

  for (const char* name : {"tx_bytes", "rx_bytes"}) {
    const auto from = find(before, name), to = find(after, name);
    if (!from || !to) return verdict(Verdict::unproven, std::string("no counter ") + name);
    if (*to < *from) return verdict(Verdict::unproven, std::string(name) + " went backwards");
  }
  const uint64_t sent = *find(after, "tx_bytes") - *find(before, "tx_bytes");
  const uint64_t received = *find(after, "rx_bytes") - *find(before, "rx_bytes");
  const auto text = [](const char* direction, uint64_t tunnel, uint64_t worker) {
    return std::string(direction) + " " + std::to_string(tunnel) + " B in the tunnel, " +
           std::to_string(worker) + " B by the worker";
  };
  if (traffic.sent_bytes == 0 && traffic.received_bytes == 0) return verdict(Verdict::unproven, "no traffic");
  if (received < traffic.received_bytes)
    return verdict(Verdict::contradicted, text("received", received, traffic.received_bytes));
  if (sent < traffic.sent_bytes)
    return verdict(sent <= kIdleBytes ? Verdict::contradicted : Verdict::unproven,
                   text("sent", sent, traffic.sent_bytes));
  if (find(after, "last_handshake_time_sec").value_or(0) == 0)
    return verdict(Verdict::unproven, "no handshake");
  return verdict(Verdict::proved, claim.claimed);
}

}  // namespace fsbl::wireguard
