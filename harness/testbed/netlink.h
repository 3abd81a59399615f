// One rtnetlink conversation with the kernel: libnl builds and parses, this owns the memory and keeps the
// errno that libnl's own error codes lose. Internal to this layer; every call acts on the calling thread's
// namespace.
#pragma once
#include <netlink/route/link.h>

#include <memory>
#include <string>

#include "harness/core/error.h"

namespace fsbl {

struct NetlinkFree {
  void operator()(nl_sock* socket) const;
  void operator()(nl_msg* message) const;
  void operator()(rtnl_link* link) const;
};
using NetlinkMessage = std::unique_ptr<nl_msg, NetlinkFree>;
using RouteLink = std::unique_ptr<rtnl_link, NetlinkFree>;

class RouteSocket {
 public:
  static Expected<RouteSocket> open();
  // The kernel's present view of a device; a missing one is ENODEV.
  Expected<RouteLink> link(const std::string& name) const;
  // Sends a built request and waits for the kernel's acknowledgement. `what` begins the error.
  Expected<> request(NetlinkMessage message, const std::string& what) const;

 private:
  std::unique_ptr<nl_sock, NetlinkFree> socket_;
};

// The message that a libnl build function made, or its failure as an error.
template <class Build>
Expected<NetlinkMessage> build_message(const std::string& what, Build build) {
  nl_msg* message = nullptr;
  if (const int result = build(&message); result < 0) return fault(what, nl_geterror(result));
  return NetlinkMessage(message);
}

}  // namespace fsbl
