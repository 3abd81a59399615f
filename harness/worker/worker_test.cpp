// The worker over its channel, as its agent speaks with it: one whole round of each transport, and everything that
// an agent must not say. Nothing crashes or hangs; the worker answers with an error and ends.
#include "harness/worker/worker.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include <optional>
#include <thread>

#include "harness/core/fd.h"
#include "harness/identity/svid.h"
#include "harness/protocol/frame.h"
#include "harness/scenario/load.h"
#include "harness/stats/histogram_json.h"
#include "harness/transport/registry.h"

namespace fsbl {
namespace {

constexpr Nanos kMilli = 1'000'000, kSecond = 1000 * kMilli;
constexpr Nanos kHangLimit = 90 * kSecond;

// A CPU that this process may use.
int some_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  int cpu = 0;
  while (cpu < CPU_SETSIZE && !CPU_ISSET(static_cast<size_t>(cpu), &cpus)) ++cpu;
  return cpu;
}

class AgentsEnd {
 public:
  AgentsEnd() {
    signal(SIGPIPE, SIG_IGN);  // as main() does
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_.reset(ends[0]);
    theirs_.reset(ends[1]);
    channel_.emplace(ours_.get(), ours_.get(), "the worker");
    thread_ = std::thread([this] {
      result_ = serve_worker(theirs_.get());
      theirs_.reset();
    });
  }
  ~AgentsEnd() {
    ours_.reset();
    if (thread_.joinable()) thread_.join();
  }
  Expected<Json> call(Json request) { return fsbl::call(*channel_, ++id_, std::move(request), kHangLimit); }
  void ask(Json request) { EXPECT_TRUE(send_request(*channel_, ++id_, std::move(request), kHangLimit)); }
  Expected<Json> answer() { return receive_reply(*channel_, id_, kHangLimit); }
  Channel& channel() { return *channel_; }
  void hang_up() { ours_.reset(); }
  // How it ended.
  Expected<> ended() {
    thread_.join();
    return result_;
  }

 private:
  UniqueFd ours_, theirs_;
  std::optional<Channel> channel_;
  uint32_t id_ = 0;
  Expected<> result_;
  std::thread thread_;
};

CellConfig make_config(Composition transport) {
  CellConfig config;
  config.transport = std::move(transport);
  config.load.payload_bytes = 5000;
  config.load.verify = Verify::full;
  config.phases.warm_up = 10 * kMilli;
  config.phases.measure = 50 * kMilli;
  config.phases.cool_down = 10 * kMilli;
  config.phases.min_samples = 1;
  config.phases.max_duration = kHangLimit;
  config.placement.client = config.placement.server = {some_cpu()};
  return config;
}
const Composition kPlain = {"plaintext", "none", "plain", ""};
const Composition kMtls = {"mtls", "none", "tls", "openssl"};

Json setup_request(const CellConfig& config, Role role, const Json& secrets = Json::object()) {
  return {{"op", "setup"}, {"role", to_text(role)}, {"config", to_json(config)}, {"address", "127.0.0.1"},
          {"local_address", "127.0.0.1"}, {"pattern_seed", 17u}, {"threads", 1u}, {"secrets", secrets},
          {"canary", "FSBLcanary"}};
}

// {client's, server's} secrets, by the session's own sides.
std::array<Json, 2> make_secrets(const CellConfig& config) {
  const auto authority = SvidAuthority::create("fsbl.test").value();
  const SessionDescriptor* session = find_session(config.transport.session);
  std::array<Json, 2> secrets, offers;
  std::array<std::unique_ptr<Side>, 2> sides;
  for (size_t i = 0; i < 2; ++i) {
    sides[i] = session->make_side({i == 0 ? Role::client : Role::server, config, {}, {}});
    offers[i] = sides[i]->prepare().value();
  }
  for (size_t i = 0; i < 2; ++i) {
    Json grant = Json::object();
    if (offers[i].contains("csr_pem")) {
      const auto id = parse_spiffe_id(offers[i]["spiffe_id"].get<std::string>()).value();
      grant = {{"chain_pem", authority.issue(offers[i]["csr_pem"].get<std::string>(), id, config.tls.ttl).value().chain_pem},
               {"bundle_pem", authority.bundle_pem()}, {"trust_domain", "fsbl.test"}, {"peer_id", offers[1 - i]["spiffe_id"]}};
    }
    EXPECT_TRUE(sides[i]->up(offers[1 - i], grant));
    secrets[i] = sides[i]->worker_secrets();
  }
  return secrets;
}

void play_a_round(const CellConfig& config) {
  const auto secrets = make_secrets(config);
  AgentsEnd client, server;
  for (AgentsEnd* end : {&client, &server}) {
    const auto hello = end->call({{"op", "hello"}});
    ASSERT_TRUE(hello) << hello.error().message();
    EXPECT_EQ((*hello)["protocol"], kProtocolVersion);
  }
  const auto served = server.call(setup_request(config, Role::server, secrets[1]));
  ASSERT_TRUE(served) << served.error().message();
  const auto set_up = client.call(setup_request(config, Role::client, secrets[0]));
  ASSERT_TRUE(set_up) << set_up.error().message();
  EXPECT_EQ((*served)["ports"].size(), 1u);
  EXPECT_GT((*served)["ports"][0].get<int>(), 0);

  const Json connect = {{"op", "connect"}, {"ports", (*served)["ports"]}, {"timeout_ns", kHangLimit}};
  for (AgentsEnd* end : {&server, &client}) end->ask(connect);
  for (AgentsEnd* end : {&server, &client}) {
    const auto connected = end->answer();
    ASSERT_TRUE(connected) << connected.error().message();
    EXPECT_EQ((*connected)["planned"], config.load.streams);
    EXPECT_EQ((*connected)["established"], config.load.streams) << *connected;
    EXPECT_EQ((*connected)["handshakes"].size(), config.transport.engine.empty() ? 0 : config.load.streams);
    EXPECT_EQ((*connected)["failures"], Json::array());
  }

  for (AgentsEnd* end : {&server, &client}) end->ask({{"op", "go"}});
  Json readings[2];
  for (size_t i = 0; i < 2; ++i) {
    AgentsEnd& end = i == 0 ? client : server;
    auto reading = end.answer();
    ASSERT_TRUE(reading) << reading.error().message();
    readings[i] = std::move(*reading);
    EXPECT_TRUE(end.ended());
  }
  const Json &c = readings[0], &s = readings[1];
  EXPECT_EQ(c["failures"], Json::array());
  EXPECT_EQ(s["failures"], Json::array());
  EXPECT_EQ(c["planned"], c["done"]);
  EXPECT_EQ(c["sent_bytes"], s["received_bytes"]);
  EXPECT_EQ(c["received_bytes"], s["sent_bytes"]);
  EXPECT_EQ(c["wire_out"], s["wire_in"]);
  EXPECT_GT(c["max_rss_bytes"].get<uint64_t>(), 0u);
  EXPECT_GE(c["window_to_ns"].get<Nanos>() - c["window_from_ns"].get<Nanos>(), 0);
  if (config.load.shape == Shape::request_response) {
    EXPECT_EQ(c["done"], s["done"]);
    const auto latency = histogram_from_json(c["latency"]);
    ASSERT_TRUE(latency) << latency.error().message();
    EXPECT_GT(latency->count(), 0u);
  }
}

TEST(Worker, PlaysARoundOfEachTransport) {
  for (const Composition& transport : {kPlain, kMtls})
    for (uint32_t streams : {1u, 8u}) {
      CellConfig config = make_config(transport);
      config.load.streams = streams;
      play_a_round(config);
    }
}

TEST(Worker, PlaysStreamsAndResumedFlows) {
  CellConfig config = make_config(kMtls);
  config.load.streams = 3;
  config.tls.resumption = true;
  play_a_round(config);
  config.load.shape = Shape::stream;
  for (Direction direction : {Direction::up, Direction::down}) {
    config.load.direction = direction;
    play_a_round(config);
  }
}

TEST(Worker, PlaysTheNullSessionAlone) {
  AgentsEnd client;
  ASSERT_TRUE(client.call(setup_request(make_config({"null", "none", "null", ""}), Role::client)));
  const auto connected = client.call({{"op", "connect"}, {"ports", {0u}}});
  ASSERT_TRUE(connected) << connected.error().message();
  EXPECT_EQ((*connected)["established"], 1);
  const auto reading = client.call({{"op", "go"}});
  ASSERT_TRUE(reading) << reading.error().message();
  EXPECT_GT((*reading)["done"].get<uint64_t>(), 0u);
  EXPECT_TRUE(client.ended());
}

// The worker answers `request` with an error that contains `words`, and ends.
void expect_error(const Json& request, const std::string& words) {
  AgentsEnd agent;
  const auto reply = agent.call(request);
  ASSERT_FALSE(reply) << request << " was taken: " << *reply;
  EXPECT_NE(reply.error().message().find(words), std::string::npos) << request << ": " << reply.error().message();
  EXPECT_FALSE(agent.ended());
}

TEST(Worker, OperationsOutOfOrderAreErrors) {
  expect_error({{"op", "connect"}}, "out of order");
  expect_error({{"op", "go"}}, "out of order");
  expect_error({{"op", "dance"}}, "unknown request 'dance'");

  AgentsEnd twice;
  ASSERT_TRUE(twice.call(setup_request(make_config(kPlain), Role::server)));
  const auto again = twice.call(setup_request(make_config(kPlain), Role::server));
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message().find("already set up"), std::string::npos);

  AgentsEnd early;
  ASSERT_TRUE(early.call(setup_request(make_config(kPlain), Role::server)));
  EXPECT_FALSE(early.call({{"op", "go"}}));

  AgentsEnd reconnecting;
  ASSERT_TRUE(reconnecting.call(setup_request(make_config(kPlain), Role::server)));
  ASSERT_TRUE(reconnecting.call({{"op", "connect"}, {"timeout_ns", kMilli}}));
  EXPECT_FALSE(reconnecting.call({{"op", "connect"}, {"timeout_ns", kMilli}}));
}

TEST(Worker, MalformedConfigurationsAreErrors) {
  const Json good = setup_request(make_config(kPlain), Role::server);
  {
    AgentsEnd agent;
    ASSERT_TRUE(agent.call(good));
  }
  const auto with = [&](const char* pointer, Json value) {
    Json request = good;
    request[Json::json_pointer(pointer)] = std::move(value);
    return request;
  };
  Json without = good;
  without.erase("config");
  expect_error(without, "cell configuration");
  expect_error(with("/config", Json::array()), "cell configuration");
  expect_error(with("/config", "plaintext"), "cell configuration");
  expect_error(with("/config/load/payload_bytes", "many"), "payload");
  expect_error(with("/config/load/payload_bytes", 0), "payload");
  expect_error(with("/config/placement/server", Json::array()), "placement");
  expect_error(with("/config/placement/server", {-1}), "placement");
  expect_error(with("/config/placement/server", {1023}), "pin to CPU 1023");
  expect_error(with("/config/testbed/numa/server", 63), "NUMA node 63");
  expect_error(with("/config/transport/session", "smoke-signals"), "session smoke-signals");
  expect_error(with("/config/transport/session", "null"), "no server side");
  expect_error(with("/config/transport", {{"name", "x"}, {"tunnel", "none"}, {"session", "tls"}, {"engine", "steam"}}),
               "steam");
  expect_error(with("/address", "nowhere"), "nowhere");
  expect_error(with("/address", "203.0.113.7"), "EADDRNOTAVAIL");
}

TEST(Worker, WrongTypesAreErrors) {
  const Json plain = setup_request(make_config(kPlain), Role::server);
  const Json tls = setup_request(make_config(kMtls), Role::server, make_secrets(make_config(kMtls))[1]);
  const auto with = [](Json request, const char* pointer, Json value) {
    request[Json::json_pointer(pointer)] = std::move(value);
    return request;
  };
  for (const char* key : {"/role", "/address", "/canary", "/pattern_seed", "/threads"})
    expect_error(with(plain, key, Json::object()), "malformed request");
  for (const Json& secrets : {Json(5), Json("text"), Json::array({1})}) expect_error(with(plain, "/secrets", secrets), "malformed request");
  for (const char* key : {"/secrets/key_pem", "/secrets/chain_pem", "/secrets/bundle_pem", "/secrets/trust_domain", "/secrets/peer_id"}) {
    expect_error(with(tls, key, 5), "malformed");
    expect_error(with(tls, key, Json::array()), "malformed");
  }
  expect_error(with(tls, "/secrets/key_pem", "no key"), "private key");
  expect_error(with(tls, "/secrets/bundle_pem", "no bundle"), "bundle");
  expect_error(with(plain, "/role", "referee"), "role");
}

TEST(Worker, PortsMustMatchTheThreads) {
  const auto connect = [](Json ports) {
    AgentsEnd agent;
    EXPECT_TRUE(agent.call(setup_request(make_config(kPlain), Role::client)));
    const auto reply = agent.call({{"op", "connect"}, {"ports", std::move(ports)}, {"timeout_ns", kMilli}});
    EXPECT_EQ(bool(agent.ended()), bool(reply));
    return reply ? "no error" : reply.error().message();
  };
  EXPECT_NE(connect(Json::array()).find("as many ports as threads"), std::string::npos);
  EXPECT_NE(connect({1u, 2u}).find("as many ports as threads"), std::string::npos);
  EXPECT_NE(connect({"http"}).find("malformed port"), std::string::npos);
  EXPECT_NE(connect({-5}).find("malformed port"), std::string::npos);
  EXPECT_NE(connect({70'000u}).find("malformed port"), std::string::npos);
  EXPECT_NE(connect({{"first", 1u}}).find("malformed"), std::string::npos);
  EXPECT_NE(connect(5).find("malformed"), std::string::npos);
}

TEST(Worker, AnUnreachableServerIsAnOutcomeNotAnError) {
  AgentsEnd server, client;
  const auto ports = server.call(setup_request(make_config(kPlain), Role::server));
  ASSERT_TRUE(ports);
  server.hang_up();  // its listener goes with it
  EXPECT_FALSE(server.ended());
  ASSERT_TRUE(client.call(setup_request(make_config(kPlain), Role::client)));
  const auto connected = client.call({{"op", "connect"}, {"ports", (*ports)["ports"]}, {"timeout_ns", kHangLimit}});
  ASSERT_TRUE(connected) << connected.error().message();
  EXPECT_EQ((*connected)["established"], 0);
  EXPECT_EQ((*connected)["failures"], Json::array({"connect: ECONNREFUSED: Connection refused"}));
}

TEST(Worker, AnAgentThatIsGoneEndsIt) {
  for (int after = 0; after < 3; ++after) {
    AgentsEnd agent;
    if (after > 0) {
      ASSERT_TRUE(agent.call(setup_request(make_config(kPlain), Role::server)));
    }
    if (after > 1) agent.ask({{"op", "connect"}, {"timeout_ns", 10 * kMilli}});
    agent.hang_up();
    const auto ended = agent.ended();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().kind, ErrorKind::fault);
  }
}

TEST(Worker, GarbageOnTheChannelEndsIt) {
  for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(9, '\xff'),
                                     encode_frame({FrameKind::blob, 1, "{}"}), encode_frame({FrameKind::json, 1, "{"}),
                                     encode_frame({FrameKind::json, 1, "[]"}), encode_frame({FrameKind::json, 1, "{\"op\":5}"}),
                                     encode_frame({FrameKind::json, 1, "{\"op\":\"setup\"}"}).substr(0, 12)}) {
    AgentsEnd agent;
    ASSERT_EQ(write(agent.channel().read_fd(), garbage.data(), garbage.size()), static_cast<ssize_t>(garbage.size()));
    if (garbage.size() == 12) agent.hang_up();  // half a frame
    EXPECT_FALSE(agent.ended()) << garbage;
  }
}

}  // namespace
}  // namespace fsbl
