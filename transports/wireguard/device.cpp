#include "transports/wireguard/device.h"

#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "harness/core/fd.h"

namespace fsbl::wireguard {
namespace {

class DeviceRequests {
 public:
  DeviceRequests(const std::string& name, int family)
      : name_(name), socket_(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

  ifreq empty() const {
    ifreq request{};
    name_.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
  }
  Expected<> send(unsigned long code, void* request, const char* step) const {
    if (!socket_ || ::ioctl(socket_.get(), code, request) != 0)
      return fault_errno(std::string(step) + " of " + name_, errno);
    return {};
  }

 private:
  std::string name_;
  UniqueFd socket_;
};

Expected<> set_address4(const DeviceRequests& device, const InnerAddress& address) {
  ifreq request = device.empty();
  auto& socket_address = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
  socket_address.sin_family = AF_INET;
  if (inet_pton(AF_INET, address.text.c_str(), &socket_address.sin_addr) != 1)
    return bad_input("set address", "'" + address.text + "' is no IPv4 address");
  FSBL_TRY(device.send(SIOCSIFADDR, &request, "set address"));
  socket_address.sin_addr.s_addr = htonl(~uint32_t{0} << (32 - address.prefix_bits));
  return device.send(SIOCSIFNETMASK, &request, "set netmask");
}

Expected<> set_address6(const DeviceRequests& device, int index, const InnerAddress& address) {
  in6_ifreq request{};
  request.ifr6_ifindex = index;
  request.ifr6_prefixlen = static_cast<uint32_t>(address.prefix_bits);
  if (inet_pton(AF_INET6, address.text.c_str(), &request.ifr6_addr) != 1)
    return bad_input("set address", "'" + address.text + "' is no IPv6 address");
  return device.send(SIOCSIFADDR, &request, "set address");
}

}  // namespace

Expected<int> device_index(const std::string& name) {
  const unsigned index = if_nametoindex(name.c_str());
  if (index == 0) return fault_errno("find device " + name, errno);
  return static_cast<int>(index);
}

Expected<> configure_device(const std::string& name, uint32_t mtu, const InnerAddress& address) {
  FSBL_ASSIGN(const int index, device_index(name));
  const bool v6 = address.family == IpFamily::v6;
  const DeviceRequests device(name, v6 ? AF_INET6 : AF_INET);
  ifreq request = device.empty();
  request.ifr_mtu = static_cast<int>(mtu);
  FSBL_TRY(device.send(SIOCSIFMTU, &request, "set MTU"));
  // An IPv6 address goes to a device that is up: one that is set earlier stays tentative until then.
  if (!v6) FSBL_TRY(set_address4(device, address));
  request = device.empty();
  FSBL_TRY(device.send(SIOCGIFFLAGS, &request, "read flags"));
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  FSBL_TRY(device.send(SIOCSIFFLAGS, &request, "bring up"));
  return v6 ? set_address6(device, index, address) : Expected<>();
}

}  // namespace fsbl::wireguard
