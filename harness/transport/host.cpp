// What this host offers the transports. Everything is tried, nothing is concluded from a version number; what
// the tries make lives in a network namespace of their own.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "harness/core/fd.h"
#include "harness/core/file.h"
#include "harness/transport/transport.h"

namespace fsbl {
namespace {

namespace fs = std::filesystem;

// The capability counts only where this namespace belongs to our user namespace or one below: the kernel
// refuses to show us any other owner.
bool has_net_admin() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  if (!(data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective & CAP_TO_MASK(CAP_NET_ADMIN))) return false;
  const UniqueFd network(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(UniqueFd(ioctl(network.get(), NS_GET_USERNS)));
}

bool opens_for_writing(const char* path) {
  return static_cast<bool>(UniqueFd(::open(path, O_RDWR | O_CLOEXEC)));
}

// The daemon is often in sbin, which an ordinary user's PATH lacks.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string folders = std::string(path ? path : "") + ":/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin";
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path file = fs::path(folders.substr(begin, end - begin)) / name;
    std::error_code missing;
    if (file.is_absolute() && fs::is_regular_file(file, missing) && access(file.c_str(), X_OK) == 0)
      return file;
    begin = end + 1;
  }
  return {};
}

// Brings lo of this thread's namespace up, so that 127.0.0.1 works.
bool loopback_up() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// Makes a WireGuard device in this thread's namespace; also loads the module if there is one.
bool makes_wireguard() {
  struct {
    nlmsghdr header;
    ifinfomsg link;
    rtattr info;
    rtattr kind;
    char name[12];
  } request{};
  constexpr char kKind[] = "wireguard";
  request.kind.rta_type = IFLA_INFO_KIND;
  request.kind.rta_len = RTA_LENGTH(sizeof kKind - 1);
  std::memcpy(request.name, kKind, sizeof kKind - 1);
  request.info.rta_type = IFLA_LINKINFO;
  request.info.rta_len = RTA_LENGTH(RTA_ALIGN(request.kind.rta_len));
  request.header.nlmsg_type = RTM_NEWLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
  request.header.nlmsg_len = sizeof request;
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (::send(socket.get(), &request, sizeof request, 0) != sizeof request) return false;
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[512];
  } reply{};
  const ssize_t n = ::recv(socket.get(), &reply, sizeof reply, 0);
  return n >= static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))) &&
         reply.header.nlmsg_type == NLMSG_ERROR && reply.error.error == 0;
}

// Where no device may be made: whether the kernel has the module, loaded, built in or as a file.
bool has_wireguard_module() {
  if (fs::exists("/sys/module/wireguard")) return true;
  utsname kernel{};
  uname(&kernel);
  for (const char* list : {"modules.builtin", "modules.dep"}) {
    const auto text = read_file(fs::path("/lib/modules") / kernel.release / list);
    if (text && text->find("/wireguard.ko") != std::string::npos) return true;
  }
  return false;
}

// Asks a connected TCP socket on loopback for the "tls" protocol; the kernel loads its module if it may.
bool makes_kernel_tls() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), generic, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &size) != 0 || connect(client.get(), generic, size) != 0)
    return false;
  return setsockopt(client.get(), IPPROTO_TCP, TCP_ULP, "tls", 3) == 0;
}

}  // namespace

Host probe_host() {
  Host host;
  host.net_admin = has_net_admin();
  host.tun = opens_for_writing("/dev/net/tun");
  host.wireguard_go = find_program("wireguard-go");
  host.openssl_version = OpenSSL_version(OPENSSL_VERSION_STRING);
  // The namespace belongs to the thread and goes with it. Without the right to one, loopback is the host's
  // own.
  const auto try_kernel = [&] {
    const bool own_namespace = unshare(CLONE_NEWNET) == 0 && loopback_up();
    host.kernel_wireguard = own_namespace ? makes_wireguard() : has_wireguard_module();
    host.kernel_tls = makes_kernel_tls();
  };
  try {
    std::thread(try_kernel).join();
  } catch (const std::system_error&) {
    // No thread to be had: both stay "not there", as everything else on such a host would.
  }
  return host;
}

}  // namespace fsbl
