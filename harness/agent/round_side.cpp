#include "harness/agent/round_side.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/load.h"
#include "harness/testbed/link.h"

namespace fsbl {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

std::vector<int> cpus_of(const CellConfig& config, Role role) {
  return role == Role::client ? config.placement.client : config.placement.server;
}

}  // namespace

Json to_json(const Device& device) {
  return {{"name", device.name}, {"ifindex", device.ifindex}, {"l2_bytes", device.l2_bytes}, {"mtu", device.mtu},
          {"address", device.address}, {"peer", device.peer}};
}

RoundSide::RoundSide(Role role, const CellConfig& config, const Device& link, int controller_fd)
    : role_(role), config_(config), attachment_{link, link}, controller_fd_(controller_fd) {}

RoundSide::~RoundSide() {
  worker_.reset();
  capture_.reset();
  if (session_) session_->down();
  if (tunnel_) tunnel_->down();
}

bool RoundSide::wants(const char* probe) const {
  return std::find(config_.probes.begin(), config_.probes.end(), probe) != config_.probes.end();
}

Expected<Json> RoundSide::prepare() {
  const TunnelDescriptor* tunnel = find_tunnel(config_.transport.tunnel);
  session_descriptor_ = find_session(config_.transport.session);
  if (!tunnel || !session_descriptor_) return unavailable(config_.transport.name, "not in this agent's build");
  SideContext context;
  context.role = role_;
  context.config = config_;
  context.link = attachment_.outer;
  context.tunnel_cpus = config_.placement.tunnel.empty() ? cpus_of(config_, role_) : config_.placement.tunnel;
  tunnel_ = tunnel->make_side(context);
  session_ = session_descriptor_->make_side(context);
  FSBL_ASSIGN(Json tunnel_offer, tunnel_->prepare());
  FSBL_ASSIGN(Json session_offer, session_->prepare());
  return Json{{"offer", {{"tunnel", tunnel_offer}, {"session", session_offer}}}};
}

Expected<Json> RoundSide::up(const Json& request) {
  if (!tunnel_) return fault("up", "out of order");
  const Json offer = request.value("peer_offer", Json::object()), grant = request.value("grant", Json::object());
  FSBL_TRY(tunnel_->up(offer.value("tunnel", Json::object()), grant));
  tunnel_->attach(attachment_);
  FSBL_TRY(session_->up(offer.value("session", Json::object()), grant));
  return Json::object();
}

Expected<Json> RoundSide::establish() {
  if (!tunnel_) return fault("establish", "out of order");
  FSBL_TRY(tunnel_->establish());
  FSBL_TRY(session_->establish());
  return Json{{"attachment", {{"outer", to_json(attachment_.outer)}, {"inner", to_json(attachment_.inner)}}}};
}

Expected<Json> RoundSide::start_worker(const Json& request) {
  if (!session_) return fault("worker", "out of order");
  FSBL_ASSIGN(worker_, WorkerProcess::start(config_));
  // Opened before the worker makes its threads, which then inherit the events.
  if (wants("perf")) perf_ = std::make_unique<PerfProbe>(worker_->pid());
  canary_ = request.value("canary", std::string());
  const bool server = role_ == Role::server;
  Json setup = {{"op", "setup"},
                {"role", to_text(role_)},
                {"config", to_json(config_)},
                {"address", server ? attachment_.inner.address : attachment_.inner.peer},
                {"local_address", attachment_.inner.address},
                {"pattern_seed", request.value("pattern_seed", uint64_t{1})},
                {"canary", canary_},
                {"threads", request.value("threads", uint64_t{1})},
                {"secrets", session_->worker_secrets()}};
  WorkerProcess::Waiting waiting;
  waiting.timeout = 20 * kSecond;
  return call_worker(std::move(setup), std::move(waiting));
}

Expected<> RoundSide::witness(std::pair<Counters, Counters>& into) {
  FSBL_ASSIGN(into.first, tunnel_->witness());
  FSBL_ASSIGN(into.second, session_->witness());
  return {};
}

// A worker that fails may fail because the tunnel is gone: then the tunnel's own words come first.
Expected<Json> RoundSide::call_worker(Json request, WorkerProcess::Waiting waiting) {
  auto reply = worker_->call(std::move(request), std::move(waiting));
  if (reply || reply.error().kind == ErrorKind::cancelled) return reply;
  auto alive = tunnel_->witness();
  if (alive) return reply;
  alive.error().why += "; " + reply.error().message();
  return tl::unexpected(alive.error());
}

Expected<Json> RoundSide::connect(const Json& request) {
  if (!worker_) return fault("connect", "out of order");
  FSBL_TRY(witness(before_));
  if (!in_process()) {
    FSBL_ASSIGN(interface_before_, link_counters(attachment_.outer.name));
    FSBL_ASSIGN(auto capture, LinkCapture::open(attachment_.outer.name));
    capture_ = std::make_unique<LinkCapture>(std::move(capture));
  }
  const Nanos timeout = request.value("timeout_ns", Nanos{10 * kSecond});
  WorkerProcess::Waiting waiting;
  waiting.timeout = timeout + 5 * kSecond;
  waiting.controller_fd = controller_fd_;
  if (capture_) {
    waiting.watched_fd = capture_->fd();
    waiting.on_readable = [this] { capture_->drain(canary_); };
  }
  FSBL_ASSIGN(connected_, call_worker({{"op", "connect"}, {"ports", request.value("ports", Json::array())}, {"timeout_ns", timeout}}, waiting));
  if (capture_) capture_->drain(canary_);
  if (capture_)
    connected_["capture"] = {{"frames", capture_->frames()}, {"matches", capture_->matches()}, {"dropped", capture_->dropped()}};
  return connected_;
}

LayerProof RoundSide::prove_link() const {
  const bool plain = config_.transport.tunnel == "none" && config_.transport.session == "plain";
  LayerProof proof;
  proof.layer = "link";
  proof.side = to_text(role_);
  proof.kind = "kernel";
  proof.claimed = plain ? "application bytes in clear" : "no application byte in clear";
  const Json capture = connected_["capture"];
  const uint64_t frames = capture.value("frames", uint64_t{0}), matches = capture.value("matches", uint64_t{0}),
                 dropped = capture.value("dropped", uint64_t{0});
  const std::string source = "packet socket on " + attachment_.outer.name + " while connecting";
  proof.evidence = {{source, "frames with the canary", 0, matches, plain ? ">= 1" : "= 0", "frames"},
                    {source, "frames", 0, frames, ">= 1", "frames"},
                    {source, "dropped", 0, dropped, "= 0", "frames"}};
  if (matches > 0) {
    proof.witnessed = "application bytes in clear";
    proof.verdict = plain ? Verdict::proved : Verdict::contradicted;
  } else if (frames == 0 || dropped > 0) {
    proof.witnessed = frames == 0 ? "no frame was captured" : "frames were dropped before the capture";
    proof.verdict = Verdict::unproven;
  } else {
    proof.witnessed = "no application byte in clear";
    proof.verdict = plain ? Verdict::contradicted : Verdict::proved;
  }
  return proof;
}

Json RoundSide::interface_reading(const std::vector<std::pair<std::string, uint64_t>>& after) const {
  Json json = {{"link", attachment_.outer.name}, {"difference", Json::object()}};
  for (const auto& [name, value] : after)
    for (const auto& [old_name, old_value] : interface_before_)
      if (old_name == name) json["difference"][name] = value - old_value;
  return json;
}

Expected<Json> RoundSide::measure(const Json& request) {
  if (connected_.is_null()) return fault("measure", "out of order");
  capture_.reset();  // outside the window only: a packet socket copies every frame
  std::vector<pid_t> pids = {worker_->pid()};
  for (const Side* side : {tunnel_.get(), session_.get()})
    for (pid_t pid : side->daemons()) pids.push_back(pid);
  const std::vector<int> cpus = cpus_of(config_, role_);
  const bool with_cpu = wants("cpu");

  CpuSample opened, closed;
  const Nanos start = mono_now_ns() + 2'000'000;
  WorkerProcess::Waiting waiting;
  waiting.timeout = request.value("timeout_ns", Nanos{600 * kSecond});
  waiting.controller_fd = controller_fd_;
  waiting.moments.push_back({start + config_.phases.warm_up, [&] {
    if (with_cpu) opened = cpu_sample(pids, cpus);
    if (perf_) perf_->begin();
  }});
  waiting.moments.push_back({start + config_.phases.warm_up + config_.phases.measure, [&] {
    if (perf_) perf_->end();
    if (with_cpu) closed = cpu_sample(pids, cpus);
  }});
  FSBL_ASSIGN(Json reading, call_worker({{"op", "go"}}, waiting));

  std::pair<Counters, Counters> after;
  FSBL_TRY(witness(after));
  Json reply = Json::object();
  Traffic traffic;
  traffic.sent_bytes = reading.value("sent_bytes", uint64_t{0});
  traffic.received_bytes = reading.value("received_bytes", uint64_t{0});
  traffic.flows = connected_.value("planned", uint64_t{0});
  traffic.worker = reading;
  traffic.worker["handshakes"] = connected_.value("handshakes", Json::array());
  Json layers = Json::array();
  if (!in_process()) {
    FSBL_ASSIGN(const auto interface_after, link_counters(attachment_.outer.name));
    if (wants("interface")) reply["interface"] = interface_reading(interface_after);
    layers.push_back(to_json(prove_link()));
  }
  for (const LayerProof& proof : tunnel_->prove(before_.first, after.first, traffic)) layers.push_back(to_json(proof));
  for (const LayerProof& proof : session_->prove(before_.second, after.second, traffic)) layers.push_back(to_json(proof));
  reply["reading"] = std::move(reading);
  reply["layers"] = std::move(layers);
  if (const auto offloads = read_offloads(attachment_.outer.name)) reply["offloads"] = *offloads;
  if (with_cpu && closed.time_ns > 0) reply["cpu"] = cpu_difference(opened, closed);
  if (perf_) {
    reply["perf"] = perf_->counters();
    reply["missing"] = perf_->missing();
  }
  reply["attachment"] = {{"outer", to_json(attachment_.outer)}, {"inner", to_json(attachment_.inner)}};
  return reply;
}

}  // namespace fsbl
