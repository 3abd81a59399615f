// The host probe against what the kernel and the file system say by other ways.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <openssl/opensslv.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "harness/core/fd.h"
#include "harness/core/file.h"
#include "harness/transport/transport.h"

namespace fsbl {
namespace {

namespace fs = std::filesystem;

constexpr int kSkip = 77;

// Exit status of `body` in a forked child.
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return static_cast<int>(syscall(SYS_capset, &header, none));
}

TEST(Host, OpensslIsTheOneThatRuns) {
  const std::string version = probe_host().openssl_version;
  EXPECT_EQ(version.substr(0, version.find('.')), std::to_string(OPENSSL_VERSION_MAJOR));
}

TEST(Host, TunIsWhatOpens) {
  const UniqueFd tun(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(probe_host().tun, static_cast<bool>(tun));
}

TEST(Host, NetAdminGoesWithTheCapability) {
  EXPECT_EQ(in_child([] {
              if (drop_capabilities() != 0) return 1;
              return probe_host().net_admin ? 2 : 0;
            }),
            0);
}

TEST(Host, NetAdminCountsOnlyInOnesOwnNetwork) {
  const int status = in_child([] {
    if (unshare(CLONE_NEWUSER) != 0) return kSkip;
    if (probe_host().net_admin) return 1;  // all capabilities, but over a network that is still the host's
    if (unshare(CLONE_NEWNET) != 0) return kSkip;
    return probe_host().net_admin ? 0 : 2;
  });
  if (status == kSkip) GTEST_SKIP() << "user namespaces are not allowed here";
  EXPECT_EQ(status, 0);
}

TEST(Host, WireguardGoIsFoundOnThePath) {
  const fs::path folder = fs::temp_directory_path() / ("fsbl_host_" + std::to_string(getpid()));
  fs::create_directories(folder / "decoy" / "wireguard-go");  // a folder of that name is no program
  ASSERT_TRUE(write_file_atomic(folder / "wireguard-go", "#!/bin/sh\n", 0644));
  const std::string path = (folder / "decoy").string() + "::" + folder.string();
  const auto found = [&] {
    return in_child([&] {
      setenv("PATH", path.c_str(), 1);
      return probe_host().wireguard_go == folder / "wireguard-go" ? 1 : 0;
    });
  };
  EXPECT_EQ(found(), 0) << "not executable";
  fs::permissions(folder / "wireguard-go", fs::perms::owner_all);
  EXPECT_EQ(found(), 1);
  fs::remove_all(folder);
}

TEST(Host, KernelTlsAgreesWithProc) {
  const bool claimed = probe_host().kernel_tls;
  // The file is there exactly while the protocol is; the probe may just have loaded it.
  EXPECT_EQ(claimed, fs::exists("/proc/net/tls_stat"));
}

TEST(Host, KernelWireguardAgreesWithSys) {
  const bool claimed = probe_host().kernel_wireguard;
  if (!claimed) {
    EXPECT_FALSE(fs::exists("/sys/module/wireguard"));
  } else if (geteuid() == 0) {
    EXPECT_TRUE(fs::exists("/sys/module/wireguard")) << "the probe made a device, so the module is loaded";
  }
}

TEST(Host, ProbingLeavesNoDevice) {
  const auto devices = [] {
    size_t count = 0;
    for (char c : read_small("/proc/net/dev")) count += c == ':';
    return count;
  };
  const size_t before = devices();
  probe_host();
  EXPECT_EQ(devices(), before);
}

}  // namespace
}  // namespace fsbl
