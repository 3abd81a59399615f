// The embedded testbed: two hosts that reach each other and nothing else, and that leave nothing behind.
#include "harness/testbed/testbed.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "harness/core/file.h"
#include "harness/testbed/link.h"
#include "harness/testbed/netns.h"
#include "harness/testbed/test_child.h"

namespace fsbl {
namespace {

Expected<> configure(const NetnsTestbed& testbed, Role role, uint32_t mtu) {
  const TestbedHost& host = testbed.host(role);
  return in_network_namespace(testbed.namespace_fds(role)[0], [&]() -> Expected<> {
    FSBL_TRY(add_address(host.link, host.address4 + "/30"));
    FSBL_TRY(add_address(host.link, host.address6 + "/126"));
    FSBL_TRY(set_mtu(host.link, mtu));
    return set_up(host.link);
  });
}

sockaddr_storage socket_address(const std::string& text, uint16_t port) {
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
  }
  return storage;
}

// A UDP socket of the host, bound to its address and connected to the peer's, that never fragments.
Expected<UniqueFd> udp_socket(const NetnsTestbed& testbed, Role role, IpFamily ip) {
  const TestbedHost& host = testbed.host(role);
  const auto own = socket_address(ip == IpFamily::v4 ? host.address4 : host.address6, 7777);
  const auto peer = socket_address(ip == IpFamily::v4 ? host.peer4 : host.peer6, 7777);
  UniqueFd made;
  FSBL_TRY(in_network_namespace(testbed.namespace_fds(role)[0], [&]() -> Expected<> {
    made.reset(::socket(own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int never = IP_PMTUDISC_DO, never6 = IPV6_PMTUDISC_DO;
    const timeval patience{5, 0};
    FSBL_REQUIRE(setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    if (ip == IpFamily::v4)
      FSBL_REQUIRE(setsockopt(made.get(), IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof never) == 0);
    else
      FSBL_REQUIRE(setsockopt(made.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &never6, sizeof never6) == 0);
    FSBL_REQUIRE(bind(made.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
    FSBL_REQUIRE(connect(made.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0);
    return {};
  }));
  return made;
}

// Both ways, a datagram that fills the MTU; one byte more must be refused.
Expected<> exchange(const NetnsTestbed& testbed, IpFamily ip, uint32_t mtu) {
  FSBL_ASSIGN(const UniqueFd client, udp_socket(testbed, Role::client, ip));
  FSBL_ASSIGN(const UniqueFd server, udp_socket(testbed, Role::server, ip));
  const size_t headers = (ip == IpFamily::v4 ? 20 : 40) + 8;
  std::string sent(mtu - headers, 'x'), got(65536, '\0');
  for (auto [from, to] : {std::pair{client.get(), server.get()}, {server.get(), client.get()}}) {
    FSBL_REQUIRE(send(from, sent.data(), sent.size(), 0) == static_cast<ssize_t>(sent.size()));
    FSBL_REQUIRE(recv(to, got.data(), got.size(), 0) == static_cast<ssize_t>(sent.size()));
    FSBL_REQUIRE(got.compare(0, sent.size(), sent) == 0);
  }
  sent += 'x';
  FSBL_REQUIRE(send(client.get(), sent.data(), sent.size(), 0) < 0 && errno == EMSGSIZE);
  return {};
}

ino_t inode(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

// Names of this network namespace's devices, from /proc/net/dev.
std::string devices() {
  std::istringstream table(read_small("/proc/thread-self/net/dev"));
  std::string names;
  for (std::string line; std::getline(table, line);)
    if (const size_t colon = line.find(':'); colon != std::string::npos) names += line.substr(0, colon) + ",";
  return names;
}

std::string named_namespaces() {
  std::string names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", missing))
    names += entry.path().string() + ",";
  return names;
}

class Testbed : public testing::TestWithParam<As> {};

TEST_P(Testbed, HostsExchangeDatagramsThatFillTheMtu) {
  FSBL_EXPECT_CHILD(run_with_testbeds(GetParam(), []() -> Expected<> {
    for (uint32_t mtu : {1500u, 9000u}) {
      TestbedConfig config;
      config.mtu = mtu;
      FSBL_ASSIGN(const NetnsTestbed testbed, NetnsTestbed::create(config));
      FSBL_TRY(configure(testbed, Role::client, mtu));
      FSBL_TRY(configure(testbed, Role::server, mtu));
      FSBL_TRY(exchange(testbed, IpFamily::v4, mtu));
      FSBL_TRY(exchange(testbed, IpFamily::v6, mtu));
    }
    return {};
  }));
}

TEST_P(Testbed, NothingAppearsInTheHostsNamespace) {
  FSBL_EXPECT_CHILD(run_with_testbeds(GetParam(), []() -> Expected<> {
    const std::string devices_before = devices(), names_before = named_namespaces();
    FSBL_ASSIGN(const NetnsTestbed testbed, NetnsTestbed::create({}));
    FSBL_REQUIRE(devices() == devices_before && named_namespaces() == names_before);
    const ino_t own = inode(UniqueFd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)).get());
    const int client = testbed.namespace_fds(Role::client)[0],
              server = testbed.namespace_fds(Role::server)[0];
    FSBL_REQUIRE(inode(client) != own && inode(server) != own && inode(client) != inode(server));
    for (int ns : {client, server})
      FSBL_TRY(in_network_namespace(ns, []() -> Expected<> {
        FSBL_REQUIRE(devices().find("eth0,") != std::string::npos &&
                     devices().find("lo,") != std::string::npos);
        FSBL_REQUIRE(read_small("/proc/sys/net/ipv4/ip_forward") == "0");
        FSBL_REQUIRE(read_small("/proc/sys/net/ipv6/conf/eth0/accept_ra") == "0");
        FSBL_REQUIRE(read_small("/proc/sys/net/ipv6/conf/eth0/router_solicitations") == "0");
        FSBL_REQUIRE(read_small("/proc/sys/net/ipv6/conf/eth0/forwarding") == "0");
        return {};
      }));
    FSBL_REQUIRE((fcntl(client, F_GETFD) & FD_CLOEXEC) && (fcntl(server, F_GETFD) & FD_CLOEXEC));
    return {};
  }));
}

TEST_P(Testbed, TwoSideBySideDoNotTouch) {
  FSBL_EXPECT_CHILD(run_with_testbeds(GetParam(), []() -> Expected<> {
    FSBL_ASSIGN(const NetnsTestbed one, NetnsTestbed::create({}));
    FSBL_ASSIGN(const NetnsTestbed two, NetnsTestbed::create({}));
    for (const NetnsTestbed* testbed : {&one, &two})
      for (Role role : {Role::client, Role::server}) FSBL_TRY(configure(*testbed, role, 1500));
    FSBL_ASSIGN(const UniqueFd bystander, udp_socket(two, Role::server, IpFamily::v4));
    FSBL_TRY(exchange(one, IpFamily::v4, 1500));
    char byte;
    FSBL_REQUIRE(recv(bystander.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    FSBL_TRY(exchange(one, IpFamily::v6, 1500));
    return {};
  }));
}

TEST_P(Testbed, ChildIsPlacedInItsHost) {
  FSBL_EXPECT_CHILD(run_with_testbeds(GetParam(), []() -> Expected<> {
    FSBL_ASSIGN(const NetnsTestbed testbed, NetnsTestbed::create({}));
    SpawnOptions options;
    options.argv = {"/bin/sleep", "30"};
    options.namespaces = testbed.namespace_fds(Role::server);
    FSBL_ASSIGN(const Child child, spawn(options));
    const std::string path = "/proc/" + std::to_string(child.pid()) + "/ns/net";
    struct stat info {};
    FSBL_REQUIRE(stat(path.c_str(), &info) == 0);
    FSBL_REQUIRE(info.st_ino == inode(testbed.namespace_fds(Role::server)[0]));
    return {};
  }));
}

// When the server's namespace dies, its end of the veth pair dies, and with that the client's end. So the
// observer keeps the client's namespace only, and sees the death of the other one there.
TEST_P(Testbed, KernelRemovesItWhenTheHolderIsKilled) {
  FSBL_EXPECT_CHILD(run_with_testbeds(GetParam(), []() -> Expected<> {
    int report[2];
    FSBL_REQUIRE(pipe2(report, O_CLOEXEC) == 0);
    Child holder(fork());
    if (holder.pid() == 0) {
      auto testbed = NetnsTestbed::create({});
      const int fd = testbed ? testbed->namespace_fds(Role::client)[0] : -1;
      [[maybe_unused]] const auto n = ::write(report[1], &fd, sizeof fd);
      for (;;) pause();
    }
    int fd = -1;
    FSBL_REQUIRE(::read(report[0], &fd, sizeof fd) == sizeof fd && fd >= 0);
    const std::string path = "/proc/" + std::to_string(holder.pid()) + "/fd/" + std::to_string(fd);
    const UniqueFd client(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto link_gone = [&] {
      return !in_network_namespace(client.get(), [] { return find_link("eth0").map([](auto&&) {}); });
    };
    FSBL_REQUIRE(client);
    FSBL_REQUIRE(!link_gone());
    holder = Child();  // SIGKILL
    // The kernel takes namespaces apart in the background.
    for (int i = 0; i < 1000 && !link_gone(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    FSBL_REQUIRE(link_gone());
    return {};
  }));
}

// The second of its namespaces is one too many: create() fails in the middle, and the first one goes.
TEST_P(Testbed, FailureInTheMiddleLeavesNothing) {
  FSBL_EXPECT_CHILD(run_with_testbeds(GetParam(), []() -> Expected<> {
    if (geteuid() == 0 && read_small("/proc/self/uid_map").find("4294967295") != std::string::npos)
      FSBL_TRY(enter_user_namespace());  // root: take one of its own, whose limits are nobody else's
    const size_t descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    const auto limit = [](const char* text) -> Expected<> {
      const UniqueFd file(::open("/proc/sys/user/max_net_namespaces", O_WRONLY | O_CLOEXEC));
      FSBL_REQUIRE(::write(file.get(), text, strlen(text)) > 0);
      return {};
    };
    FSBL_TRY(limit("2"));
    const auto refused = NetnsTestbed::create({});
    FSBL_REQUIRE(!refused && refused.error().message().find("ENOSPC") != std::string::npos);
    FSBL_REQUIRE(refused.error().fix.find("max_net_namespaces") != std::string::npos);
    FSBL_REQUIRE(size_t(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})) ==
                 descriptors);
    FSBL_TRY(limit("100"));
    FSBL_ASSIGN(const NetnsTestbed now, NetnsTestbed::create({}));
    return {};
  }));
}

INSTANTIATE_TEST_SUITE_P(As, Testbed, testing::Values(As::caller, As::ordinary_user), [](const auto& info) {
  return info.param == As::caller ? std::string("Caller") : std::string("OrdinaryUser");
});

TEST(TestbedRefusal, OtherKinds) {
  TestbedConfig config;
  config.kind = "ssh";
  const auto made = NetnsTestbed::create(config);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::bad_input);
}

TEST(TestbedRefusal, WithoutPrivilegeItSaysTheFix) {
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    FSBL_TRY(become_ordinary_user());
    const auto made = NetnsTestbed::create({});
    FSBL_REQUIRE(!made && made.error().kind == ErrorKind::unavailable && !made.error().fix.empty());
    return {};
  }));
}

}  // namespace
}  // namespace fsbl
