// The environment: complete, stable, and silent about who this host is.
#include "harness/testbed/environment.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <functional>
#include <thread>

#include "harness/core/file.h"
#include "harness/testbed/environment_parts.h"

namespace fsbl {
namespace {

// Calls `check` with the path and value of every leaf.
void each_leaf(const Json& value, const std::string& path,
               const std::function<void(const std::string&, const Json&)>& check) {
  if (!value.is_structured()) return check(path, value);
  for (const auto& [key, child] : value.items()) each_leaf(child, path + "." + key, check);
}

TEST(Environment, EveryFactIsThereOrMissingWithAReason) {
  const Json host = environment("lo");
  for (const char* path : {"/cpu/model",
                           "/cpu/flags",
                           "/cpu/microcode",
                           "/cpu/cores",
                           "/cpu/threads_per_core",
                           "/cpu/sockets",
                           "/cpu/numa_nodes",
                           "/cpu/governor",
                           "/cpu/smt",
                           "/cpu/max_mhz",
                           "/cpu/mitigations",
                           "/memory_bytes",
                           "/kernel/release",
                           "/kernel/version",
                           "/kernel/cmdline_digest",
                           "/kernel/preempt",
                           "/clocksource",
                           "/container",
                           "/virtual_machine",
                           "/boot_id",
                           "/os",
                           "/libraries/openssl",
                           "/libraries/glibc",
                           "/libraries/libnl",
                           "/sysctls/net.core.rmem_max",
                           "/sysctls/net.ipv4.tcp_congestion_control",
                           "/irq_affinity",
                           "/link/name",
                           "/link/mtu",
                           "/link/offloads",
                           "/link/queues",
                           "/clock_sync"})
    EXPECT_TRUE(host.contains(Json::json_pointer(path))) << path;
  each_leaf(host, "", [](const std::string& path, const Json& value) {
    EXPECT_FALSE(value.is_null()) << path;
    if (!value.is_string() || path.starts_with(".kernel.cmdline_options.")) return;
    EXPECT_NE(value, "") << path;
    EXPECT_NE(value, "missing: ") << path;
  });
}

// Against sources of their own: sysconf, uname, the devices of this namespace.
TEST(Environment, AgreesWithOtherSources) {
  const Json host = environment("lo");
  utsname name{};
  ASSERT_EQ(uname(&name), 0);
  EXPECT_EQ(host["kernel"]["release"], name.release);
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)),
             page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_GT(host["memory_bytes"].get<uint64_t>(), 0u);
  EXPECT_LE(host["memory_bytes"].get<uint64_t>(), pages * page);  // less where a container shows its share
  if (host["cpu"]["cores"].is_number()) {
    EXPECT_GE(host["cpu"]["cores"].get<long>() * host["cpu"]["threads_per_core"].get<long>(),
              sysconf(_SC_NPROCESSORS_ONLN));
    EXPECT_LE(host["cpu"]["cores"].get<long>(), sysconf(_SC_NPROCESSORS_ONLN));
    EXPECT_LE(host["cpu"]["sockets"].get<long>(), host["cpu"]["cores"].get<long>());
  }
  EXPECT_EQ(host["link"]["name"], "lo");
  EXPECT_EQ(std::to_string(host["link"]["mtu"].get<int>()), read_small("/sys/class/net/lo/mtu"));
}

TEST(Environment, TwoCallsAgreeOnWhatAffectsSpeed) {
  EXPECT_EQ(speed_relevant(environment("lo")), speed_relevant(environment("lo")));
}

TEST(Environment, SpeedRelevantDropsBootAndClockAndKeepsTheRest) {
  Json host = environment("lo");
  const std::string before = speed_relevant(host);
  host["boot_id"] = "another";
  host["clock_sync"] = {{"synchronized", false}, {"maximum_error_us", 1}};
  EXPECT_EQ(speed_relevant(host), before);
  Json reordered = Json::object();
  for (const char* key : {"sysctls", "cpu"}) reordered[key] = host[key];
  for (const auto& [key, value] : host.items()) reordered[key] = value;
  EXPECT_EQ(speed_relevant(reordered), before);
  host["cpu"]["governor"] = "another";
  EXPECT_NE(speed_relevant(host), before);
}

TEST(Environment, AbsentOrNoLinkIsMissing) {
  for (const char* link : {"", "fsbl-no-link", "a-name-far-longer-than-a-device-may-have"}) {
    const Json host = environment(link);
    EXPECT_TRUE(host["link"].get<std::string>().starts_with("missing: ")) << link;
    EXPECT_TRUE(host["irq_affinity"].get<std::string>().starts_with("missing: ")) << link;
  }
}

bool holds_mac_address(std::string_view text) {
  constexpr size_t kLetters = 17;  // "xx:xx:xx:xx:xx:xx"
  for (size_t at = 0; at + kLetters <= text.size(); ++at) {
    size_t i = 0;
    while (i < kLetters &&
           (i % 3 == 2 ? text[at + i] == ':' : isxdigit(static_cast<unsigned char>(text[at + i]))))
      ++i;
    if (i == kLetters) return true;
  }
  return false;
}

TEST(Environment, NoMacAddressNorSerialNumber) {
  const std::string text = environment("lo").dump() + environment("eth0").dump();
  ASSERT_TRUE(holds_mac_address("x\"02:00:5e:10:Ff:01\""));
  EXPECT_FALSE(holds_mac_address(text)) << text;
  for (const char* file : {"product_serial", "product_uuid", "board_serial", "chassis_serial"})
    if (const std::string serial = read_small(std::string("/sys/class/dmi/id/") + file); serial.size() > 3) {
      EXPECT_EQ(text.find(serial), std::string::npos) << file;
    }
  if (const std::string machine = read_small("/etc/machine-id"); !machine.empty()) {
    EXPECT_EQ(text.find(machine), std::string::npos);
  }
}

// A name that occurs nowhere else, given to a UTS namespace of our own.
TEST(Environment, HostNameNeverAppears) {
  constexpr std::string_view kName = "fsbl-telltale-host";
  bool possible = false;
  std::string text;
  std::thread([&] {
    possible = unshare(CLONE_NEWUTS) == 0 && sethostname(kName.data(), kName.size()) == 0;
    if (possible) text = environment("lo").dump();
  }).join();
  if (!possible) GTEST_SKIP() << "unshare(CLONE_NEWUTS): needs CAP_SYS_ADMIN";
  EXPECT_EQ(text.find(kName), std::string::npos) << text;
}

TEST(EnvironmentParsers, CpuinfoValue) {
  const char* text =
      "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC: x\nflags\t\t: fpu "
      "aes\npower:\nempty\t:\nprocessor\t: 1\n";
  EXPECT_EQ(cpuinfo_value(text, "model name"), "AMD EPYC: x");
  EXPECT_EQ(cpuinfo_value(text, "model"), "17");
  EXPECT_EQ(cpuinfo_value(text, "processor"), "0");
  EXPECT_EQ(cpuinfo_value(text, "power"), "");
  EXPECT_EQ(cpuinfo_value(text, "empty"), "");
  EXPECT_EQ(cpuinfo_value(text, "absent"), "");
  EXPECT_EQ(cpuinfo_value("", "model"), "");
}

TEST(EnvironmentParsers, Bracketed) {
  EXPECT_EQ(bracketed("none voluntary [full] lazy"), "full");
  for (const char* none : {"", "full", "[full", "full]", "]full["}) EXPECT_EQ(bracketed(none), "") << none;
}

TEST(EnvironmentParsers, SpeedOptionsLeaveOutWhatIdentifies) {
  const Json options = speed_options(
      "BOOT_IMAGE=/vmlinuz root=UUID=12-34 ro isolcpus=2,3 nosmt mitigations=off ip=10.0.0.1\n");
  EXPECT_EQ(options, (Json{{"isolcpus", "2,3"}, {"nosmt", ""}, {"mitigations", "off"}}));
  EXPECT_EQ(speed_options(""), Json::object());
}

}  // namespace
}  // namespace fsbl
