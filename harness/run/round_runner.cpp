#include "harness/run/round_runner.h"

#include <fmt/format.h>
#include <sys/random.h>

#include "harness/identity/deviation.h"
#include "harness/scenario/load.h"
#include "harness/transport/registry.h"

namespace fsbl {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kConnectTimeout = 15 * kSecond;

// 32 random letters: recognisable in a capture, impossible by chance.
std::string make_canary() {
  unsigned char bytes[28];
  std::string text = "FSBL";
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return "FSBL-canary-without-randomness!!";
  for (unsigned char byte : bytes) text.push_back(static_cast<char>('A' + byte % 26));
  return text;
}

void append_line(std::string& log, uint64_t& entries, Json entry, const Round& round) {
  entry["cell"] = round.cell;
  entry["block"] = round.block;
  log += dump_json(entry) + "\n";
  ++entries;
}

// Certificates for the sides that asked for one. What the identity of a side is made to lack comes from the
// scenario (tls.client_svid, tls.server_svid: negative probes).
Expected<BothSides<Json>> make_grants(const Cell& cell, const SvidAuthority& authority, const BothSides<Json>& offers,
                                      Round& round, RunLogs& logs) {
  BothSides<Json> grants = {Json::object(), Json::object()};
  for (Role role : {Role::client, Role::server}) {
    const Json session = offers[index_of(role)]["offer"].value("session", Json::object());
    if (!session.contains("csr_pem")) continue;
    const TlsConfig& tls = cell.config.tls;
    const std::string& made = role == Role::client ? tls.client_svid : tls.server_svid;
    FSBL_ASSIGN(const SpiffeId id, parse_spiffe_id(session.value("spiffe_id", std::string())));
    FSBL_ASSIGN(const Deviation deviation, deviation_of(made));
    FSBL_ASSIGN(const Issued issued, authority.issue(session.value("csr_pem", std::string()), id, tls.ttl, deviation));
    const Json peer = offers[index_of(role == Role::client ? Role::server : Role::client)]["offer"]["session"];
    grants[index_of(role)] = {{"chain_pem", issued.chain_pem}, {"bundle_pem", authority.bundle_pem()},
                              {"trust_domain", authority.trust_domain()}, {"present", made != "none"},
                              {"peer_id", peer.value("spiffe_id", std::string())}};
    append_line(logs.issuance, logs.issuance_entries,
                {{"time", utc_now()}, {"side", to_text(role)}, {"spiffe_id", issued.spiffe_id},
                 {"serial", issued.serial_hex}, {"not_before", issued.not_before}, {"not_after", issued.not_after},
                 {"key_type", issued.key_type}, {"made", made}},
                round);
  }
  return grants;
}

void log_connections(const BothSides<Json>& connected, Round& round, RunLogs& logs) {
  for (const Json& side : connected) {
    for (const Json& handshake : side.at("handshakes")) append_line(logs.handshakes, logs.handshake_entries, handshake, round);
    for (const Json& refusal : side.at("refusals")) append_line(logs.refusals, logs.refusal_entries, refusal, round);
  }
}

}  // namespace

Expected<> run_round(LiveTestbed& testbed, const Cell& cell, const SvidAuthority& authority, uint64_t pattern_seed,
                     Round& round, RunLogs& logs) {
  const auto same = [](const Json& request) { return BothSides<Json>{request, request}; };
  FSBL_ASSIGN(const auto offers, testbed.both(same({{"op", "prepare"}, {"config", to_json(cell.config)}}), 20 * kSecond));
  FSBL_ASSIGN(const auto grants, make_grants(cell, authority, offers, round, logs));
  FSBL_ASSIGN(const auto up, testbed.both({Json{{"op", "up"}, {"peer_offer", offers[1]["offer"]}, {"grant", grants[0]}},
                                           Json{{"op", "up"}, {"peer_offer", offers[0]["offer"]}, {"grant", grants[1]}}},
                                          30 * kSecond));
  FSBL_ASSIGN(const auto established, testbed.both(same({{"op", "establish"}}), 30 * kSecond));

  // As many server threads as client threads, so that each client thread has a port of its own.
  const CellConfig& config = cell.config;
  const size_t threads = std::min(config.placement.client.size(), config.placement.server.size());
  const Json start = {{"op", "worker"}, {"pattern_seed", pattern_seed}, {"canary", make_canary()}, {"threads", threads}};
  const bool in_process = find_session(config.transport.session)->in_process;
  FSBL_ASSIGN(const Json client_worker, testbed.agent(Role::client).call(start, 30 * kSecond));
  Json server_worker = {{"ports", Json::array()}};
  for (size_t i = 0; i < threads; ++i) server_worker["ports"].push_back(0u);
  if (!in_process) {
    FSBL_ASSIGN(server_worker, testbed.agent(Role::server).call(start, 30 * kSecond));
  }
  Json ports = server_worker["ports"];
  const Json connect = {{"op", "connect"}, {"ports", ports}, {"timeout_ns", kConnectTimeout}};
  const PhaseConfig& phases = config.phases;
  const Nanos longest = std::max(phases.measure, phases.max_duration) + phases.warm_up + phases.cool_down + 25 * kSecond;  // the drain limit, and some
  const Json measure = {{"op", "measure"}, {"timeout_ns", longest}};

  BothSides<Json> connected, measured;
  if (in_process) {
    FSBL_ASSIGN(connected[0], testbed.agent(Role::client).call(connect, kConnectTimeout + 10 * kSecond));
    connected[1] = {{"handshakes", Json::array()}, {"refusals", Json::array()}, {"failures", Json::array()}};
  } else {
    FSBL_ASSIGN(connected, testbed.both(same(connect), kConnectTimeout + 10 * kSecond));
  }
  log_connections(connected, round, logs);
  round.attempts.planned = connected[0].value("planned", uint64_t{0});
  round.attempts.accepted = connected[0].value("established", uint64_t{0});
  for (const Json& side : connected)
    for (const Json& refusal : side.at("refusals"))
      if (refusal.value("by", "") == "us") ++round.attempts.refused_by_reason[refusal.value("reason", "unknown")];
  if (round.attempts.accepted < round.attempts.planned) {
    std::string why = fmt::format("{} of {} flows came up", round.attempts.accepted, round.attempts.planned);
    for (const Json& side : connected) {
      if (!side.at("refusals").empty())
        why += fmt::format("; the {} {}: {}", side.at("refusals")[0].value("side", "?"),
                           side.at("refusals")[0].value("by", "") == "us" ? "refused" : "was refused", side.at("refusals")[0].value("reason", "?"));
      if (!side.at("failures").empty()) why += "; " + side.at("failures")[0].get<std::string>();
    }
    return fault("connect", why);
  }
  if (in_process) {
    FSBL_ASSIGN(measured[0], testbed.agent(Role::client).call(measure, longest + 10 * kSecond));
  } else {
    FSBL_ASSIGN(measured, testbed.both(same(measure), longest + 10 * kSecond));
  }
  read_round(cell, connected, measured, round);
  FSBL_TRY(testbed.both(same({{"op", "down"}}), 20 * kSecond));
  return {};
}

}  // namespace fsbl
