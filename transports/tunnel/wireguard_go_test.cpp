// Two real wireguard-go daemons between two network namespaces: handshake, traffic, proof, and nothing left
// behind.
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <functional>

#include "harness/core/fd.h"
#include "harness/core/file.h"
#include "harness/core/process.h"
#include "harness/core/scope_exit.h"
#include "harness/transport/registry.h"
#include "transports/wireguard/daemon.h"
#include "transports/wireguard/device.h"

namespace fsbl {

extern const TunnelDescriptor tunnel_wireguard_go;
extern const TunnelDescriptor tunnel_none;

namespace {

using Body = std::function<Expected<>()>;
enum class As { caller, ordinary_user };

constexpr size_t kBytes = 1 << 20;
constexpr size_t kReplyBytes = 1000;

#define REQUIRE(condition)                                                                   \
  do {                                                                                       \
    if (!(condition)) return fault(#condition, "false in line " + std::to_string(__LINE__)); \
  } while (0)

// --- processes and namespaces ---

// Forks `body`; its result arrives on the descriptor as text, "skip: ..." where the host can't.
struct Forked {
  explicit Forked(const Body& body) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) return;
    pid = fork();
    if (pid == 0) {
      const auto result = body();
      std::string text;
      if (!result)
        text = (result.error().kind == ErrorKind::unavailable ? "skip: " : "") + result.error().message();
      [[maybe_unused]] const auto n = write(report[1], text.data(), text.size());
      _exit(0);
    }
    close(report[1]);
    from.reset(report[0]);
  }
  std::string verdict() {
    std::string text;
    char chunk[512];
    for (ssize_t n; (n = read(from.get(), chunk, sizeof chunk)) > 0;)
      text.append(chunk, static_cast<size_t>(n));
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : text + " (ended early)";
  }
  pid_t pid = -1;
  UniqueFd from;
};

Expected<> write_text(const char* path, const std::string& text) {
  const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return unavailable(std::string("write ") + path, errno_text(errno));
  return {};
}

// Root over a network namespace of our own: as we are, or through a user namespace.
Expected<> enter_world(As as) {
  if (geteuid() == 0 && as == As::ordinary_user) {
    if (setgroups(0, nullptr) != 0 || setresgid(65534, 65534, 65534) != 0 ||
        setresuid(65534, 65534, 65534) != 0)
      return unavailable("become an ordinary user", errno_text(errno));
    prctl(PR_SET_DUMPABLE, 1);  // as after exec by that user
  }
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  if (uid == "0")
    return unshare(CLONE_NEWNET) == 0 ? Expected<>() : unavailable("unshare", errno_text(errno));
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return unavailable("unshare user namespace", errno_text(errno));
  FSBL_TRY(write_text("/proc/self/setgroups", "deny"));
  FSBL_TRY(write_text("/proc/self/uid_map", "0 " + uid + " 1"));
  return write_text("/proc/self/gid_map", "0 " + gid + " 1");
}

// Whether this host can run the test at all.
Expected<> host_has_what_it_takes() {
  if (wireguard::find_program("wireguard-go").empty()) return unavailable("test", "no wireguard-go");
  if (wireguard::find_program("ip").empty()) return unavailable("test", "no ip (iproute2)");
  if (!UniqueFd(open("/dev/net/tun", O_RDWR | O_CLOEXEC)))
    return unavailable("test", "/dev/net/tun can't be opened");
  return {};
}

Expected<> ip(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), wireguard::find_program("ip"));
  FSBL_ASSIGN(const CommandOutput output, run_command(arguments, 10'000'000'000));
  if (output.status != 0) return fault("ip", output.err);
  return {};
}

// --- one side, as the agent runs it ---

// Sequenced packets to the other side's process: offers, and "I am here".
struct Wire {
  UniqueFd fd;
  Expected<std::string> swap(const std::string& text) const {
    if (send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0)
      return fault_errno("tell the other side", errno);
    char buffer[4096];
    const ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return fault("hear the other side", "it is gone");
    return std::string(buffer, static_cast<size_t>(n));
  }
  Expected<> meet() const {
    return swap("here").map([](const auto&) {});
  }
};

struct Ends {
  std::string mine, peer;
};
Ends link_ends(Role role, IpFamily family) {
  const bool v4 = family == IpFamily::v4;
  Ends ends{v4 ? "198.18.0.1" : "2001:2:0:1::1", v4 ? "198.18.0.2" : "2001:2:0:1::2"};
  if (role == Role::server) std::swap(ends.mine, ends.peer);
  return ends;
}

SideContext context_for(Role role, IpFamily family, uint32_t mtu = 1500) {
  SideContext context;
  context.role = role;
  context.config.testbed.ip = family;
  const Ends ends = link_ends(role, family);
  context.link = {"eth0", 0, 14, mtu, ends.mine, ends.peer};
  return context;
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  Address(const std::string& text, uint16_t port) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      size = sizeof v4;
    } else if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      size = sizeof v6;
    }
  }
};

Expected<> move_bytes(int fd, size_t send_bytes, size_t receive_bytes) {
  std::string data(64 * 1024, 'x');
  while (send_bytes > 0) {
    const ssize_t n = send(fd, data.data(), std::min(data.size(), send_bytes), MSG_NOSIGNAL);
    if (n <= 0) return fault_errno("send", errno);
    send_bytes -= static_cast<size_t>(n);
  }
  while (receive_bytes > 0) {
    const ssize_t n = recv(fd, data.data(), std::min(data.size(), receive_bytes), 0);
    if (n <= 0) return fault_errno("receive", errno);
    receive_bytes -= static_cast<size_t>(n);
  }
  return {};
}

// TCP over the tunnel: the client sends kBytes and gets kReplyBytes.
Expected<> traffic(Role role, const Device& inner, const Wire& wire) {
  Address here(inner.address, 7000), there(inner.peer, 7000);
  const UniqueFd socket(::socket(here.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{20, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (role == Role::client) {
    FSBL_TRY(wire.meet());
    if (connect(socket.get(), there.get(), there.size) != 0) return fault_errno("connect", errno);
    return move_bytes(socket.get(), kBytes, kReplyBytes);
  }
  if (bind(socket.get(), here.get(), here.size) != 0 || listen(socket.get(), 1) != 0)
    return fault_errno("listen", errno);
  FSBL_TRY(wire.meet());
  const UniqueFd connection(accept(socket.get(), nullptr, nullptr));
  if (!connection) return fault_errno("accept", errno);
  FSBL_TRY(move_bytes(connection.get(), 0, kBytes));
  return move_bytes(connection.get(), kReplyBytes, 0);
}

Expected<> check_proofs(Side& side, Role role, const Counters& before, const Counters& after) {
  Traffic moved{.sent_bytes = kBytes, .received_bytes = kReplyBytes};
  if (role == Role::server) std::swap(moved.sent_bytes, moved.received_bytes);
  const auto proved = side.prove(before, after, moved);
  REQUIRE(proved.size() == 1);
  if (proved[0].verdict != Verdict::proved) return fault("prove", proved[0].witnessed);
  REQUIRE(proved[0].side == to_text(role));
  Traffic claimed = moved;
  claimed.sent_bytes = 10 * kBytes;
  REQUIRE(side.prove(before, after, claimed)[0].verdict != Verdict::proved);
  claimed = moved;
  claimed.received_bytes = 10 * kBytes;
  REQUIRE(side.prove(before, after, claimed)[0].verdict == Verdict::contradicted);
  REQUIRE(side.prove(before, before, moved)[0].verdict == Verdict::contradicted);
  return {};
}

Expected<> check_down(Side& side) {
  const pid_t pid = side.daemons().front();
  side.down();
  REQUIRE(kill(pid, 0) != 0 && errno == ESRCH);
  REQUIRE(if_nametoindex("wg0") == 0);
  REQUIRE(side.daemons().empty());
  REQUIRE(!side.witness());
  side.down();
  return {};
}

Expected<> run_side(Role role, IpFamily family, const Wire& wire) {
  const bool v4 = family == IpFamily::v4;
  FSBL_TRY(ip({"link", "set", "eth0", "up"}));
  FSBL_TRY(ip({"addr", "add", link_ends(role, family).mine + (v4 ? "/30" : "/126"), "dev", "eth0", "nodad"}));
  FSBL_TRY(wire.meet());

  const auto side = tunnel_wireguard_go.make_side(context_for(role, family));
  FSBL_ASSIGN(const Json offer, side->prepare());
  REQUIRE(offer.size() == 3 && offer.contains("public_key") && offer.contains("listen_port") &&
          offer.contains("inner_address"));
  FSBL_ASSIGN(const std::string peer, wire.swap(dump_json(offer)));
  FSBL_ASSIGN(const Json peer_offer, parse_json(peer, "offer"));
  FSBL_TRY(side->up(peer_offer, Json::object()));
  FSBL_TRY(wire.meet());
  FSBL_TRY(side->establish());
  FSBL_TRY(wire.meet());

  Attachment attachment;
  side->attach(attachment);
  REQUIRE(attachment.inner.name == "wg0" && attachment.inner.l2_bytes == 0);
  REQUIRE(attachment.inner.mtu == (v4 ? 1440u : 1420u));
  REQUIRE(attachment.inner.ifindex == static_cast<int>(if_nametoindex("wg0")));
  REQUIRE(side->daemons().size() == 1);
  FSBL_ASSIGN(const std::string command,
              read_file("/proc/" + std::to_string(side->daemons().front()) + "/cmdline", 4096));
  REQUIRE(command == wireguard::find_program("wireguard-go") + std::string("\0-f\0wg0\0", 8));

  FSBL_ASSIGN(const Counters before, side->witness());
  FSBL_TRY(wire.meet());
  FSBL_TRY(traffic(role, attachment.inner, wire));
  FSBL_TRY(wire.meet());
  FSBL_ASSIGN(const Counters after, side->witness());
  FSBL_TRY(check_proofs(*side, role, before, after));
  FSBL_TRY(wire.meet());

  if (role == Role::client) return check_down(*side);
  // The server's daemon dies instead: no counters, no proof, and the reason is told.
  const pid_t daemon = side->daemons().front();
  siginfo_t ended{};
  REQUIRE(kill(daemon, SIGKILL) == 0);
  REQUIRE(waitid(P_PID, static_cast<id_t>(daemon), &ended, WEXITED | WNOWAIT) == 0);
  const auto gone = side->witness();
  REQUIRE(!gone && gone.error().why.find("killed by SIGKILL") != std::string::npos);
  const auto proof = side->prove(before, after, {.sent_bytes = kReplyBytes, .received_bytes = kBytes});
  REQUIRE(proof[0].verdict == Verdict::unproven);
  REQUIRE(proof[0].witnessed.find("wireguard-go ended") != std::string::npos);
  return {};
}

// --- the world around both ---

Expected<> run_both_sides(IpFamily family) {
  int wires[2], go[2], ready[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wires) != 0 || pipe2(go, O_CLOEXEC) != 0 ||
      pipe2(ready, O_CLOEXEC) != 0)
    return fault_errno("make pipes", errno);
  const auto start = [&](Role role) {
    return Forked([&, role]() -> Expected<> {
      const Wire wire{UniqueFd(wires[role == Role::client ? 0 : 1])};
      close(wires[role == Role::client ? 1 : 0]);
      close(go[1]);
      close(ready[0]);
      if (unshare(CLONE_NEWNET) != 0) return fault_errno("unshare", errno);
      char byte = 0;
      if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
        return fault("start side", "world is gone");
      return run_side(role, family, wire);
    });
  };
  Forked client = start(Role::client), server = start(Role::server);
  close(wires[0]);
  close(wires[1]);
  close(ready[1]);
  char bytes[2];
  for (size_t n = 0; n < 2; ++n)
    if (read(ready[0], bytes + n, 1) != 1) return fault("start sides", client.verdict() + server.verdict());
  FSBL_TRY(ip({"link", "add", "eth0", "netns", std::to_string(client.pid), "type", "veth", "peer", "name",
               "eth0", "netns", std::to_string(server.pid)}));
  if (write(go[1], "go", 2) != 2) return fault_errno("start sides", errno);
  const std::string text = client.verdict() + server.verdict();
  close(go[0]);
  close(go[1]);
  close(ready[0]);
  return text.empty() ? Expected<>() : fault("sides", text);
}

void expect_in_world(As as, const Body& body) {
  if (const auto able = host_has_what_it_takes(); !able) GTEST_SKIP() << able.error().message();
  const std::string text = Forked([&]() -> Expected<> {
                             FSBL_TRY(enter_world(as));
                             return body();
                           }).verdict();
  if (text.starts_with("skip: ")) GTEST_SKIP() << text.substr(6);
  EXPECT_EQ(text, "");
}

TEST(WireguardGo, CarriesTcpOverIpv4) {
  expect_in_world(As::caller, [] { return run_both_sides(IpFamily::v4); });
}

TEST(WireguardGo, CarriesTcpOverIpv6) {
  expect_in_world(As::caller, [] { return run_both_sides(IpFamily::v6); });
}

TEST(WireguardGo, RunsForAnOrdinaryUser) {
  expect_in_world(As::ordinary_user, [] { return run_both_sides(IpFamily::v4); });
}

TEST(WireguardGo, StartTellsWhyItFailed) {
  expect_in_world(As::caller, []() -> Expected<> {
    const auto false_daemon = wireguard::Daemon::start("/bin/false", "wg0", {});
    REQUIRE(!false_daemon);
    REQUIRE(false_daemon.error().message().find("exit status 1") != std::string::npos);
    // A second device of the same name: the daemon itself says what is wrong.
    FSBL_TRY(
        wireguard::Daemon::start(wireguard::find_program("wireguard-go"), "wg0", {}).map([](const auto&) {}));
    auto first = wireguard::Daemon::start(wireguard::find_program("wireguard-go"), "wg0", {});
    REQUIRE(first);
    const auto second = wireguard::Daemon::start(wireguard::find_program("wireguard-go"), "wg0", {});
    REQUIRE(!second);
    REQUIRE(second.error().message().find("its log ends: ") != std::string::npos);
    return {};
  });
}

TEST(WireguardGo, RefusesBadOffers) {
  const auto side = tunnel_wireguard_go.make_side(context_for(Role::client, IpFamily::v4));
  EXPECT_FALSE(side->up(Json::object(), Json::object()));  // prepare() comes first
  Json good = side->prepare().value();
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"public_key", "AAEC"},
                                                           {"public_key", 7},
                                                           {"public_key", nullptr},
                                                           {"listen_port", 0},
                                                           {"listen_port", -1},
                                                           {"listen_port", 65536},
                                                           {"listen_port", "51820"},
                                                           {"inner_address", "nowhere"},
                                                           {"inner_address", "2001:2:0:ffff::2"},
                                                           {"inner_address", nullptr}}) {
    Json bad = good;
    bad[key] = value;
    const auto refused = side->up(bad, Json::object());
    ASSERT_FALSE(refused) << dump_json(bad);
    EXPECT_EQ(refused.error().kind, ErrorKind::bad_input) << refused.error().message();
  }
  for (const Json& bad : {Json(nullptr), Json::array(), Json("text"), Json::object()})
    EXPECT_FALSE(side->up(bad, Json::object()));
  EXPECT_FALSE(side->establish());
  EXPECT_FALSE(side->witness());
  EXPECT_TRUE(side->daemons().empty());
  EXPECT_EQ(side->prove({}, {}, {.sent_bytes = 1}).front().verdict, Verdict::unproven);
}

TEST(WireguardGo, SaysWhatTheHostLacks) {
  Host host{.net_admin = true, .tun = true, .wireguard_go = "/usr/bin/wireguard-go"};
  EXPECT_TRUE(tunnel_wireguard_go.usable(host));
  Host lacking = host;
  lacking.wireguard_go.clear();
  EXPECT_EQ(tunnel_wireguard_go.usable(lacking).error().fix, "apt-get install wireguard-go");
  lacking = host;
  lacking.tun = false;
  EXPECT_EQ(tunnel_wireguard_go.usable(lacking).error().kind, ErrorKind::unavailable);
  lacking = host;
  lacking.net_admin = false;
  EXPECT_FALSE(tunnel_wireguard_go.usable(lacking));
}

TEST(NoTunnel, LeavesTheLinkAloneAndClaimsNothing) {
  EXPECT_TRUE(tunnel_none.usable(Host{}));
  const auto side = tunnel_none.make_side(context_for(Role::server, IpFamily::v4));
  EXPECT_TRUE(side->prepare()->empty());
  EXPECT_TRUE(side->up(Json::object(), Json::object()));
  EXPECT_TRUE(side->establish());
  Attachment attachment;
  attachment.inner.name = "eth0";
  side->attach(attachment);
  EXPECT_EQ(attachment.inner.name, "eth0");
  EXPECT_TRUE(side->prove({}, {}, {.sent_bytes = 1}).empty());
  EXPECT_TRUE(side->daemons().empty());
  side->down();
}

}  // namespace
}  // namespace fsbl
