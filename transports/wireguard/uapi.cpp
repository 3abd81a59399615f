#include "transports/wireguard/uapi.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <limits>

#include "harness/core/fd.h"
#include "harness/identity/svid.h"

namespace fsbl::wireguard {
namespace {

constexpr size_t kMaxReply = 64 * 1024;

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Calls each(key, value) for every line before the empty one; each returns false for a value it can't take.
template <class Each>
Expected<> for_each_line(std::string_view reply, const std::string& what, Each each) {
  bool answered = false;
  for (int line = 1; !reply.empty(); ++line) {
    const size_t end = reply.find('\n');
    if (end == reply.npos) return fault(what, "line " + std::to_string(line) + " is not ended");
    const std::string_view text = reply.substr(0, end);
    reply.remove_prefix(end + 1);
    if (text.empty()) {
      if (!answered) return fault(what, "the daemon's reply has no errno");
      return reply.empty() ? Expected<>() : fault(what, "text after the reply's end");
    }
    const size_t equals = text.find('=');
    if (equals == text.npos) return fault(what, "line " + std::to_string(line) + " has no '='");
    const std::string_view key = text.substr(0, equals), value = text.substr(equals + 1);
    if (key == "errno") {
      int number = 0;
      if (!parse_number(value, number)) return fault(what, "line " + std::to_string(line) + " is malformed");
      // The daemon speaks of errno values as Go has them on Linux, negative.
      if (number != 0) return fault(what, "the daemon answered " + errno_text(number < 0 ? -number : number));
      answered = true;
    } else if (!each(key, value)) {
      return fault(what, "line " + std::to_string(line) + " is malformed");
    }
  }
  return fault(what, "the daemon's reply is not ended");
}

Expected<> write_all(int fd, std::string_view data, const std::string& what) {
  while (!data.empty()) {
    const ssize_t n = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fault_errno(what, errno);
    data.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

std::string set_request(const SecretKey& key, uint16_t listen_port, const PeerConfig& peer) {
  std::string secret = to_hex(key.bytes);
  std::string text;
  text.reserve(1024);  // no reallocation: it would leave a copy of the key behind
  text += "set=1\nprivate_key=";
  text += secret;
  wipe(secret);
  text += "\nlisten_port=" + std::to_string(listen_port) + "\nreplace_peers=true\npublic_key=";
  text += to_hex(peer.public_key) + "\nendpoint=" + peer.endpoint + "\nreplace_allowed_ips=true\nallowed_ip=";
  text += peer.allowed_ip + "\n\n";
  return text;
}

std::string_view get_request() {
  return "get=1\n\n";
}

Expected<> parse_set_reply(std::string_view reply) {
  return for_each_line(reply, "configure WireGuard", [](auto, auto) { return true; });
}

Expected<DeviceState> parse_get_reply(std::string_view reply) {
  DeviceState state;
  FSBL_TRY(for_each_line(reply, "read WireGuard state", [&](std::string_view key, std::string_view value) {
    if (key == "listen_port") return parse_number(value, state.listen_port);
    if (key == "public_key") {
      state.peers.emplace_back();
      return true;
    }
    const std::pair<std::string_view, uint64_t PeerState::*> counters[] = {
        {"tx_bytes", &PeerState::tx_bytes},
        {"rx_bytes", &PeerState::rx_bytes},
        {"last_handshake_time_sec", &PeerState::last_handshake_time_sec},
        {"last_handshake_time_nsec", &PeerState::last_handshake_time_nsec}};
    for (const auto& [name, member] : counters)
      if (key == name) return !state.peers.empty() && parse_number(value, state.peers.back().*member);
    return true;  // keys of no interest here, and of later versions
  }));
  return state;
}

Expected<std::string> exchange(const std::string& socket_path, std::string_view request, Nanos timeout) {
  const std::string what = "speak with WireGuard daemon";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) return fault(what, "socket path too long");
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fault_errno(what, errno);
  const timeval limit{timeout / 1'000'000'000, timeout % 1'000'000'000 / 1000};
  if (setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
      setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fault_errno(what, errno);
  FSBL_TRY(write_all(fd.get(), request, what));

  const Nanos deadline = mono_now_ns() + timeout;
  std::string reply(kMaxReply,
                    '\0');  // at full size from the start: growing would leave copies of the key behind
  size_t size = 0;
  const auto fail = [&](tl::unexpected<Error> error) {
    wipe(reply);
    return error;
  };
  while (!std::string_view(reply.data(), size).ends_with("\n\n")) {
    if (size == kMaxReply) return fail(fault(what, "reply too long"));
    const ssize_t n = ::recv(fd.get(), reply.data() + size, kMaxReply - size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(fault_errno(what, errno));
    if (n == 0) return fail(fault(what, "the daemon closed the connection"));
    size += static_cast<size_t>(n);
    if (mono_now_ns() > deadline) return fail(fault(what, "no complete reply in time"));
  }
  reply.resize(size);
  return reply;
}

}  // namespace fsbl::wireguard
