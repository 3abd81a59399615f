// The state of one flow of the TCP driver. Internal to transports/socket.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/fd.h"
#include "transports/socket/socket_driver.h"

namespace fsbl {

// Plaintext sealed between two sends: it stays in the L1 and L2 caches.
inline constexpr size_t kSealPiece = 64 << 10;
inline constexpr size_t kGathered = 32;             // small records of several flows, sealed in one burst
inline constexpr size_t kControlBytes = 64 << 10;   // a handshake's flight; alerts and KeyUpdates are far smaller
inline constexpr size_t kWireBuffer = 2 * RecordEngine::sealed_bound(kSealPiece);   // two pieces, where they overlap

// Sealed bytes on their way to the kernel: those from `at` to `end`. The memory is not touched before it is used.
struct SocketDriver::WireBuffer {
  std::unique_ptr<std::byte[]> bytes;
  size_t capacity = 0, at = 0, end = 0;

  void allocate(size_t n) {
    bytes.reset(new std::byte[n]);
    capacity = n;
  }
  bool empty() const { return at == end; }
  void clear() { at = end = 0; }
  std::span<const std::byte> left() const { return {bytes.get() + at, end - at}; }
  WireOut out() const { return {bytes.get(), end, capacity, false}; }
};

// A batch with the bytes that it writes. Two of them take turns; a third gathers small records of several flows.
struct SocketDriver::Sealing {
  std::unique_ptr<RecordBatch> batch;
  WireBuffer wire;
  struct Part {
    FlowId flow;
    size_t at, bytes;
  };
  std::vector<Part> parts;   // of the gathering one: whose bytes lie where; capacity reserved
};

struct SocketDriver::Flow {
  enum class State : uint8_t { connecting, handshaking, open, dead };
  UniqueFd fd;
  State state = State::connecting;
  std::unique_ptr<Stream> stream;
  std::span<const std::byte> pending;   // plaintext lent by submit(), not yet sealed or sent
  WireBuffer backlog;                   // sealed, not yet taken by the kernel
  std::vector<std::byte> carry;         // received, not yet opened: the beginning of a record; capacity reserved
  bool carry_is_news = false;           // it came with the handshake's last flight: may hold whole records
  bool gathered = false;                // has records that are planned and not yet sealed
  bool lent = false;                    // a `sent` event is owed
  bool in_ready = false, readable = false, hang_up = false, peer_closed = false, closed_reported = false;
  bool finish_asked = false, finished = false, blocking = false, lowat_set = false;
  bool watched = false;                 // by epoll
  uint32_t waits_in_recv = 0;           // without a look at epoll between them
  uint64_t wire_out = 0, wire_in = 0;
  const char* failed_at = "";
  int failed_errno = 0;
  std::string failure;

  bool sending() const { return gathered || !pending.empty() || !backlog.empty(); }
  bool to_announce() const { return state == State::open && (peer_closed ? !closed_reported : readable); }
};

}  // namespace fsbl
