// Links: addresses, MTU, offloads, counters and sysctls, on a testbed's own devices.
#include "harness/testbed/link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <fstream>
#include <sstream>

#include "harness/core/file.h"
#include "harness/testbed/netns.h"
#include "harness/testbed/test_child.h"

namespace fsbl {
namespace {

// Runs `body` in the client's namespace of a fresh testbed.
ChildVerdict on_client(const std::function<Expected<>()>& body) {
  return run_with_testbeds(As::caller, [&]() -> Expected<> {
    FSBL_ASSIGN(const NetnsTestbed testbed, NetnsTestbed::create({}));
    return in_network_namespace(testbed.namespace_fds(Role::client)[0], body);
  });
}

bool names(const Error& error, const std::string& part) {
  return error.message().find(part) != std::string::npos;
}

TEST(Link, FindTellsDriverAndState) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    FSBL_ASSIGN(const LinkInfo eth0, find_link("eth0"));
    FSBL_REQUIRE(eth0.driver == "veth" && eth0.mtu == 1500 && eth0.up && eth0.ifindex > 1);
    FSBL_ASSIGN(const LinkInfo lo, find_link("lo"));
    FSBL_REQUIRE(lo.driver.empty() && lo.up && lo.ifindex == 1);
    return {};
  }));
}

TEST(Link, MissingDeviceIsNamedWithErrno) {
  OffloadConfig offloads;
  offloads.tso = false;
  const std::string no = "fsbl-none";
  for (const auto& error :
       {find_link(no).error(), add_address(no, "198.18.0.1/30").error(), set_mtu(no, 1500).error(),
        set_up(no).error(), set_offloads(no, offloads).error(), link_counters(no).error()}) {
    EXPECT_TRUE(names(error, no)) << error.message();
    EXPECT_TRUE(names(error, "ENODEV")) << error.message();
  }
}

TEST(Link, BadAddressesAreRefused) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    for (const char* bad : {"", "/", "198.18.0.1", "198.18.0.1/", "198.18.0.1/33", "198.18.0.1/-1",
                            "198.18.0.1/30x", "198.18.0.256/30", "2001:2::1/129", "2001:2::g/64", "eth0/30",
                            "any", "default/0", "02:00:00:00:00:01/48"}) {
      const auto added = add_address("lo", bad);
      if (added || added.error().kind != ErrorKind::bad_input) return fault("refuse as bad input", bad);
    }
    return {};
  }));
}

TEST(Link, AddressCanBeAddedAgain) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    for (int i = 0; i < 2; ++i) {
      FSBL_TRY(add_address("eth0", "198.18.0.1/30"));
      FSBL_TRY(add_address("eth0", "2001:2::1/126"));
    }
    // Usable at once: not tentative (0x40), no duplicate address detection (0x02).
    std::ifstream table("/proc/thread-self/net/if_inet6");
    std::string address, index, prefix, scope, flags, device;
    bool found = false;
    while (table >> address >> index >> prefix >> scope >> flags >> device)
      if (address == "20010002000000000000000000000001" && device == "eth0") {
        found = true;
        FSBL_REQUIRE(prefix == "7e");
        FSBL_REQUIRE((std::stoi(flags, nullptr, 16) & 0x42) == 0x02);
      }
    FSBL_REQUIRE(found);
    return {};
  }));
}

TEST(Link, MtuIsSetAndReadBack) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    for (uint32_t mtu : {9000u, 1280u, 1500u}) {
      FSBL_TRY(set_mtu("eth0", mtu));
      FSBL_ASSIGN(const LinkInfo now, find_link("eth0"));
      FSBL_REQUIRE(now.mtu == mtu);
    }
    const auto refused = set_mtu("eth0", 70000);
    FSBL_REQUIRE(!refused && names(refused.error(), "EINVAL") && names(refused.error(), "70000"));
    return {};
  }));
}

TEST(Link, OffloadsAreSetAndReadBack) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    for (bool on : {false, true, false}) {
      OffloadConfig wanted;
      wanted.tso = wanted.gro = on;
      FSBL_ASSIGN(const Json set, set_offloads("eth0", wanted));
      FSBL_REQUIRE(set["tso"] == on && set["gro"] == on && set["tx_checksum"] == true);
      FSBL_ASSIGN(const Json read, read_offloads("eth0"));
      FSBL_REQUIRE(read == set);
    }
    FSBL_ASSIGN(const Json before, read_offloads("eth0"));
    FSBL_ASSIGN(const Json untouched, set_offloads("eth0", {}));
    FSBL_REQUIRE(untouched == before);
    return {};
  }));
}

TEST(Link, TsoWithoutChecksumIsRefusedNotIgnored) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    OffloadConfig checksum_off;
    checksum_off.checksum = false;
    FSBL_ASSIGN(const Json off, set_offloads("eth0", checksum_off));
    FSBL_REQUIRE(off["tx_checksum"] == false && off["rx_checksum"] == false && off["tso"] == false);
    OffloadConfig contradiction = checksum_off;
    contradiction.tso = true;
    const auto refused = set_offloads("eth0", contradiction);
    FSBL_REQUIRE(!refused && names(refused.error(), "tso") && names(refused.error(), "eth0"));
    OffloadConfig both_on;
    both_on.checksum = both_on.tso = true;
    FSBL_ASSIGN(const Json on, set_offloads("eth0", both_on));
    FSBL_REQUIRE(on["tx_checksum"] == true && on["rx_checksum"] == true && on["tso"] == true);
    return {};
  }));
}

TEST(Link, CountersAgreeWithProc) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    FSBL_TRY(add_address("lo", "198.18.9.9/32"));
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {}};
    const std::string payload(100, 'x');
    FSBL_REQUIRE(sendto(socket.get(), payload.data(), 100, 0, reinterpret_cast<sockaddr*>(&to), sizeof to) ==
                 100);
    FSBL_ASSIGN(const auto counters, link_counters("lo"));
    std::map<std::string, uint64_t> ours(counters.begin(), counters.end());
    FSBL_REQUIRE(ours.size() == counters.size());
    FSBL_REQUIRE(ours["tx_bytes"] >= 128 && ours["tx_packets"] >= 1);
    std::ifstream table("/proc/thread-self/net/dev");
    for (std::string line; std::getline(table, line);) {
      std::istringstream fields(line);
      std::string device;
      fields >> device;
      if (device != "lo:") continue;
      uint64_t value[16];
      for (uint64_t& v : value) fields >> v;
      FSBL_REQUIRE(ours["rx_bytes"] == value[0] && ours["rx_packets"] == value[1] &&
                   ours["rx_errors"] == value[2]);
      FSBL_REQUIRE(ours["tx_bytes"] == value[8] && ours["tx_packets"] == value[9] &&
                   ours["tx_errors"] == value[10]);
      return {};
    }
    return fault("find lo", "not in /proc/net/dev");
  }));
}

TEST(Sysctl, SetAndReadBack) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    FSBL_ASSIGN(auto now, set_sysctls({{"net.ipv4.tcp_rmem", "4096 65536 1048576"},
                                       {"net/ipv4/tcp_sack", "0"},
                                       {"net.ipv4.conf.eth0.rp_filter", "2"}}));
    FSBL_REQUIRE(now["net.ipv4.tcp_rmem"] == "4096\t65536\t1048576");
    FSBL_REQUIRE(now["net/ipv4/tcp_sack"] == "0" && read_small("/proc/sys/net/ipv4/tcp_sack") == "0");
    FSBL_REQUIRE(now["net.ipv4.conf.eth0.rp_filter"] == "2");
    return {};
  }));
}

TEST(Sysctl, InterfaceNamesMayHoldDots) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    // No device of that name here: what the error says shows which file was meant.
    for (const char* name : {"net.ipv4.conf.eth0/7.rp_filter", "net/ipv4/conf/eth0.7/rp_filter"}) {
      const auto set = set_sysctls({{name, "1"}});
      FSBL_REQUIRE(!set && names(set.error(), "ENOENT"));
    }
    FSBL_TRY(set_sysctls({{"net/ipv4/conf/eth0/rp_filter", "1"}}));
    return {};
  }));
}

TEST(Sysctl, OutsideTheNamespaceIsRefused) {
  for (const char* bad : {"kernel.panic", "vm/swappiness", "net", "net.", "net..ipv4", "", ".",
                          "net/../kernel/panic", "net.//.kernel.panic", "/net/ipv4/ip_forward", "network.x",
                          "net/./ipv4/ip_forward", "net.ipv4.//.x"}) {
    const auto set = set_sysctls({{bad, "not a number"}});  // which no kernel takes
    ASSERT_FALSE(set) << bad;
    EXPECT_EQ(set.error().kind, ErrorKind::bad_input) << bad;
  }
}

TEST(Sysctl, NothingIsSetWhenOneNameIsRefused) {
  FSBL_EXPECT_CHILD(on_client([]() -> Expected<> {
    const std::string before = read_small("/proc/sys/net/ipv4/ip_forward");
    FSBL_REQUIRE(before == "0");
    FSBL_REQUIRE(!set_sysctls({{"net.ipv4.ip_forward", "1"}, {"vm.swappiness", "not a number"}}));
    FSBL_REQUIRE(read_small("/proc/sys/net/ipv4/ip_forward") == before);
    const auto bad_value = set_sysctls({{"net.ipv4.tcp_rmem", "many"}});
    FSBL_REQUIRE(!bad_value && names(bad_value.error(), "EINVAL") &&
                 names(bad_value.error(), "net.ipv4.tcp_rmem"));
    return {};
  }));
}

}  // namespace
}  // namespace fsbl
