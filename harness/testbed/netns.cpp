#include "harness/testbed/netns.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "harness/core/log.h"
#include "harness/testbed/link.h"

namespace fsbl {
namespace {

Expected<> on_own_thread(const std::function<Expected<>()>& body) {
  Expected<> result;
  try {
    std::thread([&] { result = body(); }).join();
  } catch (const std::system_error& error) {
    return fault("start a thread", error.what());
  }
  return result;
}

// IPv4 settings are inherited from the host, IPv6 ones are the kernel's defaults. What can't be written (a
// container with a read-only /proc/sys) costs a few packets of noise, no more. Link-local addresses stay:
// without one the kernel can't probe a neighbour again.
void quieten() {
  for (const auto& setting : {std::pair{"net.ipv4.ip_forward", "0"},
                              {"net.ipv6.conf.all.forwarding", "0"},
                              {"net.ipv6.conf.default.disable_ipv6", "0"},
                              {"net.ipv6.conf.default.accept_ra", "0"},
                              {"net.ipv6.conf.default.autoconf", "0"},
                              {"net.ipv6.conf.default.router_solicitations", "0"},
                              {"net.ipv6.conf.default.accept_dad", "0"},
                              {"net.ipv6.conf.default.dad_transmits", "0"}})
    if (auto set = set_sysctls({{setting.first, setting.second}}); !set) log_debug(set.error().message());
}

}  // namespace

Expected<UniqueFd> make_network_namespace() {
  UniqueFd made;
  FSBL_TRY(on_own_thread([&]() -> Expected<> {
    if (unshare(CLONE_NEWNET) != 0)
      return fault_errno("make a network namespace", errno,
                         errno == EPERM    ? "run as root, or where unprivileged user namespaces are allowed"
                         : errno == ENOSPC ? "raise user.max_net_namespaces"
                                           : "");
    FSBL_TRY(set_up("lo"));
    quieten();
    made.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!made) return fault_errno("open the new network namespace", errno);
    return {};
  }));
  return made;
}

Expected<> in_network_namespace(int namespace_fd, const std::function<Expected<>()>& body) {
  return on_own_thread([&]() -> Expected<> {
    if (setns(namespace_fd, CLONE_NEWNET) != 0) return fault_errno("enter a network namespace", errno);
    return body();
  });
}

}  // namespace fsbl
