#include "harness/agent/agent.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>

#include "fsbl_version.h"
#include "harness/agent/round_side.h"
#include "harness/core/file.h"
#include "harness/protocol/frame.h"
#include "harness/result/model.h"
#include "harness/scenario/load.h"
#include "harness/testbed/environment.h"
#include "harness/testbed/link.h"

namespace fsbl {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

class Agent {
 public:
  explicit Agent(int controller_fd) : controller_fd_(controller_fd) {}
  Expected<Json> handle(const Json& request);

 private:
  Expected<Json> hello(const Json& request);
  Expected<Json> host(const Json& request);
  Expected<Json> prepare(const Json& request);

  int controller_fd_;
  bool greeted_ = false;
  Role role_ = Role::client;
  Device link_;
  std::unique_ptr<RoundSide> round_;
};

Expected<Json> Agent::hello(const Json& request) {
  const int theirs = request.value("protocol", 0);
  if (theirs != kProtocolVersion)
    return bad_input("hello", fmt::format("the controller speaks protocol {}, this agent {}", theirs, kProtocolVersion),
                     "install the same fsbl on both");
  greeted_ = true;
  const auto digest = sha256_file("/proc/self/exe");
  return Json{{"protocol", kProtocolVersion}, {"version", FSBL_VERSION}, {"commit", FSBL_COMMIT},
              {"binary_sha256", digest ? *digest : "missing: " + digest.error().why}};
}

// Configures this host's end of the testbed's link. Everything lies in the host's network namespace and goes with it.
Expected<Json> Agent::host(const Json& request) {
  FSBL_ASSIGN(const CellConfig config, cell_config_from_json(request.value("config", Json())));
  role_ = request.value("role", std::string()) == "server" ? Role::server : Role::client;
  const TestbedConfig& testbed = config.testbed;
  const std::string link = request.value("link", std::string());
  FSBL_TRY(set_mtu(link, testbed.mtu));
  FSBL_ASSIGN(const Json offloads, set_offloads(link, testbed.offloads));
  FSBL_ASSIGN(const auto sysctls, set_sysctls(role_ == Role::client ? testbed.sysctls_client : testbed.sysctls_server));
  FSBL_TRY(add_address(link, request.value("address4", std::string()) + "/30"));
  FSBL_TRY(add_address(link, request.value("address6", std::string()) + "/126"));
  FSBL_TRY(set_up(link));
  FSBL_ASSIGN(const LinkInfo info, find_link(link));
  const bool v6 = testbed.ip == IpFamily::v6;
  link_.name = info.name;
  link_.ifindex = info.ifindex;
  link_.mtu = info.mtu;
  link_.address = request.value(v6 ? "address6" : "address4", std::string());
  link_.peer = request.value(v6 ? "peer6" : "peer4", std::string());
  const Json facts = environment(link);
  return Json{{"link", to_json(link_)}, {"driver", info.driver}, {"offloads", offloads}, {"sysctls", Json(sysctls)},
              {"environment", facts}, {"environment_digest", "sha256:" + sha256_hex(speed_relevant(facts))}};
}

Expected<Json> Agent::prepare(const Json& request) {
  if (link_.ifindex == 0) return fault("prepare", "out of order: no host yet");
  round_.reset();
  FSBL_ASSIGN(const CellConfig config, cell_config_from_json(request.value("config", Json())));
  round_ = std::make_unique<RoundSide>(role_, config, link_, controller_fd_);
  return round_->prepare();
}

Expected<Json> Agent::handle(const Json& request) {
  const std::string op = request["op"];
  if (op == "hello") return hello(request);
  if (!greeted_) return fault(op, "out of order: no hello yet");
  if (op == "host") return host(request);
  if (op == "prepare") return prepare(request);
  if (op == "down") {
    round_.reset();
    return Json::object();
  }
  if (!round_) return fault(op, "out of order: no round");
  if (op == "up") return round_->up(request);
  if (op == "establish") return round_->establish();
  if (op == "worker") return round_->start_worker(request);
  if (op == "connect") return round_->connect(request);
  if (op == "measure") return round_->measure(request);
  return fault("agent", "unknown request '" + op + "'");
}

}  // namespace

Expected<> serve_agent(int read_fd, int write_fd) {
  // A private mount namespace: what tunnels mount (their control sockets) is seen by nobody else and goes with us.
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fault_errno("make a private mount namespace", errno);
  Channel channel(read_fd, write_fd, "the controller");
  Agent agent(read_fd);
  for (;;) {
    const auto frame = channel.receive(24 * 3600 * kSecond);
    if (!frame && frame.error().why.find("it is gone") != std::string::npos) return {};  // the orderly end
    if (!frame) return tl::unexpected(frame.error());
    FSBL_ASSIGN(const Json request, parse_request(*frame));
    Expected<Json> reply = fault("agent", "malformed request");
    try {
      reply = agent.handle(request);
    } catch (const std::exception& error) {  // nlohmann's type errors: a request with wrong types
      reply = fault("agent: " + request.value("op", std::string("?")), std::string("malformed request: ") + error.what());
    }
    FSBL_TRY(send_reply(channel, frame->id, reply, 10 * kSecond));
  }
}

}  // namespace fsbl
