#include "harness/testbed/netlink.h"

#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include <cerrno>

namespace fsbl {

void NetlinkFree::operator()(nl_sock* socket) const {
  nl_socket_free(socket);
}
void NetlinkFree::operator()(nl_msg* message) const {
  nlmsg_free(message);
}
void NetlinkFree::operator()(rtnl_link* link) const {
  rtnl_link_put(link);
}

Expected<RouteSocket> RouteSocket::open() {
  RouteSocket opened;
  opened.socket_.reset(nl_socket_alloc());
  if (!opened.socket_) return fault_errno("open rtnetlink", ENOMEM);
  if (const int result = nl_connect(opened.socket_.get(), NETLINK_ROUTE); result < 0)
    return fault("open rtnetlink", nl_geterror(result));
  return opened;
}

Expected<RouteLink> RouteSocket::link(const std::string& name) const {
  rtnl_link* found = nullptr;
  const int result = rtnl_link_get_kernel(socket_.get(), 0, name.c_str(), &found);
  if (result == -NLE_NODEV || result == -NLE_OBJ_NOTFOUND) return fault_errno("find link " + name, ENODEV);
  if (result < 0) return fault("find link " + name, nl_geterror(result));
  return RouteLink(found);
}

Expected<> RouteSocket::request(NetlinkMessage message, const std::string& what) const {
  int error_number = 0;
  const auto keep_errno = [](sockaddr_nl*, nlmsgerr* error, void* kept) -> int {
    *static_cast<int*>(kept) = -error->error;
    return NL_STOP;
  };
  nl_socket_modify_err_cb(socket_.get(), NL_CB_CUSTOM, keep_errno, &error_number);
  int result = nl_send_auto(socket_.get(), message.get());
  if (result >= 0) result = nl_wait_for_ack(socket_.get());
  nl_socket_modify_err_cb(socket_.get(), NL_CB_DEFAULT, nullptr, nullptr);
  if (error_number != 0) return fault_errno(what, error_number);
  if (result < 0) return fault(what, nl_geterror(result));
  return {};
}

}  // namespace fsbl
