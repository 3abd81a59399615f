// For tests: the two ends of one composition over loopback, driven from one thread, with a record of every event.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/identity/deviation.h"
#include "harness/transport/driver.h"
#include "harness/transport/registry.h"

namespace fsbl::contract {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kHangLimit = 90 * kSecond;  // a test that gets here is stuck; nothing is timed by it

// Every composition over TCP that this build can make: a new session or engine is tested by being there.
inline std::vector<Composition> compositions() {
  std::vector<Composition> all;
  for (const SessionDescriptor* session : sessions()) {
    if (session->in_process) continue;
    if (!session->has_records) all.push_back({std::string(session->name), "none", std::string(session->name), ""});
    for (const EngineDescriptor* engine : engines())
      if (session->has_records)
        all.push_back({std::string(session->name) + "_" + std::string(engine->name), "none",
                       std::string(session->name), std::string(engine->name)});
  }
  return all;
}

// Empty when this host can run it.
inline std::string why_not(const Composition& composition) {
  const Host host = probe_host();
  if (auto ok = find_session(composition.session)->usable(host); !ok) return ok.error().message();
  if (composition.engine.empty()) return {};
  if (auto ok = find_engine(composition.engine)->usable(host); !ok) return ok.error().message();
  return {};
}

// GoogleTest takes letters and digits only.
inline std::string test_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

template <class T>
using BothRoles = std::array<T, 2>;  // indexed by Role

inline size_t of(Role role) { return static_cast<size_t>(role); }
constexpr Role kRoles[] = {Role::client, Role::server};

// What both workers get, made as a run makes it: by the session's own sides and an authority. What is wrong with a
// certificate stands in config.tls.client_svid and server_svid.
inline BothRoles<Json> make_secrets(const CellConfig& config, const SvidAuthority& authority) {
  const SessionDescriptor* session = find_session(config.transport.session);
  BothRoles<std::unique_ptr<Side>> sides;
  BothRoles<Json> offers, secrets;
  for (Role role : kRoles) {
    sides[of(role)] = session->make_side({role, config, {}, {}});
    offers[of(role)] = sides[of(role)]->prepare().value();
  }
  for (Role role : kRoles) {
    const Json& mine = offers[of(role)];
    const Json& peer = offers[1 - of(role)];
    Json grant = Json::object();
    if (mine.contains("csr_pem")) {
      const std::string kind = role == Role::client ? config.tls.client_svid : config.tls.server_svid;
      const SpiffeId id = parse_spiffe_id(mine["spiffe_id"].get<std::string>()).value();
      const auto issued =
          authority.issue(mine["csr_pem"].get<std::string>(), id, config.tls.ttl, deviation_of(kind).value());
      grant = {{"chain_pem", issued.value().chain_pem}, {"bundle_pem", authority.bundle_pem()},
               {"trust_domain", authority.trust_domain()}, {"present", kind != "none"}, {"peer_id", peer["spiffe_id"]}};
    }
    EXPECT_TRUE(sides[of(role)]->up(peer, grant));
    secrets[of(role)] = sides[of(role)]->worker_secrets();
  }
  return secrets;
}
inline BothRoles<Json> make_secrets(const CellConfig& config) {
  return make_secrets(config, SvidAuthority::create("fsbl.test").value());
}

inline std::unique_ptr<Driver> make_driver(const CellConfig& config, Role role, const std::string& address,
                                           const Json& secrets) {
  DriverContext context;
  context.role = role;
  context.config = config;
  context.address = address;
  context.local_address = address;
  context.secrets = secrets;
  auto driver = find_session(config.transport.session)->make_driver(context);
  if (!driver) ADD_FAILURE() << driver.error().message();
  return driver ? std::move(*driver) : nullptr;
}

struct FlowLog {
  unsigned established = 0, readable = 0, sent = 0, closed = 0, error = 0;
  std::vector<std::byte> received;
};

class End {
 public:
  End() = default;
  explicit End(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}

  Driver& driver() { return *driver_; }
  void kill() { driver_.reset(); }
  FlowLog& operator[](FlowId id) {
    if (logs_.size() <= id) logs_.resize(id + 1);
    return logs_[id];
  }
  // Flows whose log fulfils `what`.
  template <class Predicate>
  size_t count(Predicate what) {
    size_t n = 0;
    for (const FlowLog& log : logs_) n += what(log);
    return n;
  }
  size_t established() { return count([](const FlowLog& log) { return log.established > 0; }); }

  // One poll; readable flows are read unless `reading` is off.
  void turn(Nanos deadline) {
    Event events[16];
    const size_t n = driver_->poll(events, deadline);
    for (size_t i = 0; i < n; ++i) {
      FlowLog& log = (*this)[events[i].flow];
      switch (events[i].kind) {
        case EventKind::established: ++log.established; break;
        case EventKind::readable:
          ++log.readable;
          if (reading) read(events[i].flow);
          break;
        case EventKind::sent: ++log.sent; break;
        case EventKind::closed: ++log.closed; break;
        case EventKind::error: ++log.error; break;
      }
      if (on_event) on_event(events[i]);
    }
  }
  size_t read(FlowId id) {
    auto& received = (*this)[id].received;
    const size_t before = received.size();
    for (const auto piece : driver_->peek(id)) received.insert(received.end(), piece.begin(), piece.end());
    return received.size() - before;
  }

  bool reading = true;
  std::function<void(const Event&)> on_event;

 private:
  std::unique_ptr<Driver> driver_;
  std::vector<FlowLog> logs_;
};

// Turns the ends until `done`; false when that doesn't come about.
inline bool until(std::initializer_list<End*> ends, const std::function<bool()>& done,
                  const std::function<void()>& also = {}) {
  const Nanos limit = mono_now_ns() + kHangLimit;
  while (!done()) {
    if (mono_now_ns() > limit) return false;
    if (also) also();
    for (End* end : ends) end->turn(mono_now_ns() + 100'000);
  }
  return true;
}

// Turns that give the other thing time to happen, where nothing is expected to.
inline void some_turns(std::initializer_list<End*> ends) {
  for (int i = 0; i < 50; ++i)
    for (End* end : ends) end->turn(mono_now_ns() + 500'000);
}

struct Pair {
  Pair(const CellConfig& config, const std::string& address)
      : secrets(make_secrets(config)),
        client(make_driver(config, Role::client, address, secrets[of(Role::client)])),
        server(make_driver(config, Role::server, address, secrets[of(Role::server)])) {}

  // False (and a failure) unless all flows come up on both sides.
  bool connect(uint32_t flows) {
    const auto listening = server.driver().listen(flows, 0);
    EXPECT_TRUE(listening) << listening.error().message();
    port = listening.value();
    const auto opened = client.driver().open(flows, port);
    EXPECT_TRUE(opened) << opened.error().message();
    const bool up = until({&client, &server}, [&] {
      return client.established() == flows && server.established() == flows;
    });
    EXPECT_TRUE(up) << client.established() << " and " << server.established() << " of " << flows << " flows";
    return up;
  }

  BothRoles<Json> secrets;
  End client, server;
  uint16_t port = 0;
};

}  // namespace fsbl::contract
