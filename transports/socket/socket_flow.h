// The state of one flow of the TCP driver. Internal to transports/socket.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/fd.h"
#include "transports/socket/socket_driver.h"

namespace fsbl {

// Plaintext sealed between two sends: it stays in the L1 and L2 caches.
inline constexpr size_t kSealPiece = 64 << 10;

struct SocketDriver::Flow {
  enum class State : uint8_t { connecting, handshaking, open, dead };
  UniqueFd fd;
  State state = State::connecting;
  std::unique_ptr<Stream> stream;
  std::span<const std::byte> pending;   // plaintext lent by submit(), not yet sealed or sent
  std::vector<std::byte> backlog;       // sealed, not yet taken by the kernel; capacity reserved
  size_t backlog_at = 0;
  std::vector<std::byte> carry;         // records that came with the handshake's last flight
  bool lent = false;                    // a `sent` event is owed
  bool in_ready = false, readable = false, hang_up = false, peer_closed = false, closed_reported = false;
  bool finish_asked = false, finished = false, blocking = false;
  uint64_t wire_out = 0, wire_in = 0;
  const char* failed_at = "";
  int failed_errno = 0;
  std::string failure;

  bool sending() const { return !pending.empty() || backlog_at < backlog.size(); }
  bool to_announce() const { return state == State::open && (peer_closed ? !closed_reported : readable); }
};

}  // namespace fsbl
