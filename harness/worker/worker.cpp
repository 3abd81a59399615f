#include "harness/worker/worker.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <vector>

#include "fsbl_version.h"
#include "harness/protocol/frame.h"
#include "harness/scenario/load.h"
#include "harness/transport/record_engine.h"
#include "harness/transport/registry.h"
#include "harness/worker/load_thread.h"

namespace fsbl {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kSendTimeout = 10 * kSecond;

class Worker {
 public:
  explicit Worker(std::string engine_module) : engine_module_(std::move(engine_module)) {}
  Expected<Json> handle(const Json& request);
  bool finished() const { return finished_; }

 private:
  Expected<Json> setup(const Json& request);
  Expected<Json> connect(const Json& request);
  Expected<Json> go();

  std::string engine_module_;
  Role role_ = Role::client;
  CellConfig config_;
  std::unique_ptr<Pattern> pattern_;
  std::vector<std::unique_ptr<LoadThread>> threads_;
  bool connected_ = false, finished_ = false;
};

std::string text_of(const Json& json, const char* key) { return json.value(key, std::string()); }

Expected<Json> Worker::setup(const Json& request) {
  if (!threads_.empty()) return fault("set up the worker", "already set up");
  FSBL_ASSIGN(config_, cell_config_from_json(request.value("config", Json())));
  const std::string role = text_of(request, "role");
  if (role != "client" && role != "server") return fault("set up the worker", "no such role: '" + role + "'");
  role_ = role == "server" ? Role::server : Role::client;
  const uint64_t seed = request.value("pattern_seed", uint64_t{1});
  pattern_ = std::make_unique<Pattern>(seed);
  const SessionDescriptor* session = find_session(config_.transport.session);
  if (!session) return unavailable("session " + config_.transport.session, "not in this worker");

  DriverContext context;
  context.role = role_;
  context.config = config_;
  context.address = text_of(request, "address");
  context.local_address = text_of(request, "local_address");
  context.secrets = request.value("secrets", Json::object());
  context.secrets["pattern_seed"] = seed;
  context.engine_module = engine_module_;
  Canary canary{};
  const std::string canary_text = text_of(request, "canary");
  std::copy_n(canary_text.begin(), std::min(canary_text.size(), canary.size()), canary.begin());

  // Flow i goes to server thread i mod S and belongs to client thread i mod C. With as many server threads as client
  // threads, or one, each client thread talks to one port.
  const auto& cpus = role_ == Role::client ? config_.placement.client : config_.placement.server;
  const auto numa = role_ == Role::client ? config_.testbed.numa_client : config_.testbed.numa_server;
  const auto peers = static_cast<uint32_t>(request.value("threads", uint64_t{1}));
  const uint32_t threads = std::max(1u, std::min({peers, config_.load.streams, static_cast<uint32_t>(cpus.size())}));
  Json ports = Json::array();
  uint32_t first = 0;
  for (uint32_t i = 0; i < threads; ++i) {
    FSBL_ASSIGN(auto thread, LoadThread::start(cpus[i], numa.value_or(-1)));
    LoadThreadConfig load;
    load.load = config_.load;
    load.flows = config_.load.streams / threads + (i < config_.load.streams % threads);
    load.first_flow = first;
    load.pattern = pattern_.get();
    load.canary = canary;
    first += load.flows;
    // Made on the thread itself: its memory then lies on the thread's node.
    context.thread = i;
    context.threads = threads;
    thread->post([&, raw = thread.get()] {
      Expected<std::unique_ptr<Driver>> driver = fault("make the driver", "malformed secrets");
      try {
        driver = session->make_driver(context);
      } catch (const std::exception&) {  // nlohmann's type errors; its text could hold what lies in the secrets
      }
      if (!driver) {
        raw->status = tl::unexpected(driver.error());
        return;
      }
      raw->driver = std::move(*driver);
      if (role_ == Role::client) {
        raw->client = std::make_unique<ClientThread>(*raw->driver, load);
        return;
      }
      raw->server = std::make_unique<ServerThread>(*raw->driver, load);
      const auto port = raw->driver->listen(load.flows, 0);
      if (port) raw->port = *port;
      else raw->status = tl::unexpected(port.error());
    });
    thread->wait();
    FSBL_TRY(thread->status);
    ports.push_back(thread->port);
    threads_.push_back(std::move(thread));
  }
  return Json{{"ports", ports}, {"threads", threads}};
}

Expected<Json> Worker::connect(const Json& request) {
  if (threads_.empty() || connected_) return fault("connect", "out of order");
  connected_ = true;
  const Json ports = request.value("ports", Json::array());
  const Nanos deadline = mono_now_ns() + request.value("timeout_ns", Nanos{10 * kSecond});
  if (role_ == Role::client && ports.size() != threads_.size()) return fault("connect", "as many ports as threads are needed");
  for (size_t i = 0; i < threads_.size(); ++i) {
    LoadThread* thread = threads_[i].get();
    if (role_ == Role::client) {
      if (!ports[i].is_number_unsigned() || ports[i].get<uint64_t>() > UINT16_MAX) return fault("connect", "malformed port");
      thread->post([thread, port = ports[i].get<uint16_t>(), deadline, alone = config_.tls.resumption] {
        thread->outcome = thread->client->connect(port, deadline, alone);
      });
    } else {
      thread->post([thread, deadline] { thread->outcome = thread->server->accept(deadline); });
    }
  }
  std::vector<ConnectOutcome> outcomes;
  for (auto& thread : threads_) {
    thread->wait();
    outcomes.push_back(thread->outcome);
  }
  return to_json(outcomes);
}

Expected<Json> Worker::go() {
  if (!connected_ || finished_) return fault("go", "out of order");
  finished_ = true;
  const Nanos start = mono_now_ns() + 2'000'000;  // time for every thread to be told
  const Timeline timeline = make_timeline(config_.phases, start);
  for (auto& thread : threads_)
    thread->post([raw = thread.get(), timeline] {
      raw->reading = raw->client ? raw->client->run(timeline) : raw->server->run(timeline);
    });
  std::vector<ThreadReading> readings;
  for (auto& thread : threads_) {
    thread->wait();
    readings.push_back(std::move(thread->reading));
  }
  Json json = to_json(readings, start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  json["max_rss_bytes"] = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  json["start_ns"] = start;
  return json;
}

Expected<Json> Worker::handle(const Json& request) {
  const std::string op = text_of(request, "op");
  if (op == "hello")
    return Json{{"protocol", kProtocolVersion}, {"version", FSBL_VERSION}, {"commit", FSBL_COMMIT}};
  if (op == "setup") return setup(request);
  if (op == "connect") return connect(request);
  if (op == "go") return go();
  return fault("worker", "unknown request '" + op + "'");
}

Expected<Json> try_engine(const std::string& text) {
  FSBL_ASSIGN(const Json json, parse_json(text, "the configuration"));
  FSBL_ASSIGN(const CellConfig config, cell_config_from_json(json));
  const EngineDescriptor* engine = find_engine(config.transport.engine);
  if (!engine) return unavailable("record engine " + config.transport.engine, "not in this worker");
  const auto threads = static_cast<uint32_t>(std::max(config.placement.client.size(), config.placement.server.size()));
  FSBL_ASSIGN(const auto engines, engine->make({&config, Role::client, 0, threads, ""}));
  return engines->facts();
}

}  // namespace

std::string check_engine_here(const std::string& config) {
  Expected<Json> facts = fault("try the record engine", "malformed configuration");
  try {
    facts = try_engine(config);
  } catch (const std::exception&) {  // nlohmann's type errors
  }
  return dump_json(facts ? Json{{"ok", *facts}} : Json{{"error", error_to_json(facts.error())}});
}

Expected<> serve_worker(int channel_fd, const std::string& engine_module) {
  Channel channel(channel_fd, channel_fd, "the agent");
  Worker worker(engine_module);
  while (!worker.finished()) {
    FSBL_ASSIGN(const Frame frame, channel.receive(600 * kSecond));
    FSBL_ASSIGN(const Json request, parse_request(frame));
    Expected<Json> reply = fault("worker", "malformed request");
    try {
      reply = worker.handle(request);
    } catch (const std::exception& error) {  // nlohmann's type errors: a request with wrong types
      reply = fault("worker", std::string("malformed request: ") + error.what());
    }
    FSBL_TRY(send_reply(channel, frame.id, reply, kSendTimeout));
    if (!reply) return tl::unexpected(reply.error());
  }
  return {};
}

}  // namespace fsbl
