// A record engine protects the TLS records of one flow once the handshake is done. In the worker, on the load
// thread: no allocation, lock, log or exception (but at a KeyUpdate, where keys are made); never blocks.
//
// RecordEngines belongs to a load thread and holds what its flows share (a device queue), a RecordEngine to a flow.
// Sealing is in two steps, so that the records of several flows share a burst and a device can work while the thread
// does something else: seal() plans, start() hands a batch over, finish() waits for it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/json.h"
#include "harness/scenario/model.h"

struct ssl_st;  // OpenSSL's SSL

namespace fsbl {

// Ciphertext that was received and not yet taken.
struct WireIn {
  const std::byte* data = nullptr;
  size_t size = 0;
  size_t take(void* to, size_t most) noexcept {
    const size_t n = most < size ? most : size;
    if (n) std::memcpy(to, data, n);
    data += n;
    size -= n;
    return n;
  }
};

// Ciphertext to be sent, appended at the end. `overflow` is set, never the bounds crossed.
struct WireOut {
  std::byte* data = nullptr;
  size_t size = 0, capacity = 0;
  bool overflow = false;
  // Room for n bytes at the end, or null.
  std::byte* extend(size_t n) noexcept {
    if (n > capacity - size) {
      overflow = true;
      return nullptr;
    }
    size += n;
    return data + size - n;
  }
  void put(const void* from, size_t n) noexcept {
    if (std::byte* to = extend(n)) std::memcpy(to, from, n);
  }
};

// Plaintext in the order of the stream; the vector's capacity is reserved by its owner.
using Pieces = std::vector<std::span<const std::byte>>;

// The application traffic secrets of one TLS 1.3 connection (RFC 8446, 7.1), 32 or 48 bytes each. Wiped when it dies.
struct TrafficSecrets {
  std::array<std::byte, 48> client{}, server{};
  size_t bytes = 0;
  uint64_t sent_records = 0, received_records = 0;  // that the handshake's owner already moved under these secrets
  TrafficSecrets() = default;
  TrafficSecrets(const TrafficSecrets&) = delete;
  TrafficSecrets& operator=(const TrafficSecrets&) = delete;
  ~TrafficSecrets() { wipe(); }
  void wipe() noexcept { explicit_bzero(this, sizeof *this); }
};

// Takes the records that carry a NewSessionTicket, as they came from the wire (the library keeps the session).
class TicketSink {
 public:
  virtual ~TicketSink() = default;
  virtual void ticket(std::span<const std::byte> record) noexcept = 0;
};

struct EngineContext {
  ssl_st* ssl = nullptr;             // handshake finished; owned by the session
  const TrafficSecrets* secrets = nullptr;   // engines with needs_secrets; gone after the call
  TicketSink* tickets = nullptr;     // null: tickets are dropped; outlives the engine
};

enum class Opened : uint8_t { ok, closed, failed };

// What was planned and not yet finished. What it means is its engine's; a driver has a few of them.
class RecordBatch {
 public:
  virtual ~RecordBatch() = default;
  virtual bool empty() const noexcept = 0;
};

// What one open() may be given.
inline constexpr size_t kMostReceived = 512 << 10;

class RecordEngine {
 public:
  static constexpr size_t kMaxRecordBytes = 16384;
  static constexpr size_t kLeastMaxRecordBytes = 512;   // what a peer may ask for (max_fragment_length, RFC 6066, 4)
  // Room that seal() of `bytes` needs: a header, a type byte and a tag (RFC 8446, 5.2) per record, and some
  // slack for a KeyUpdate.
  static constexpr size_t sealed_bound(size_t bytes) { return bytes + (bytes / kLeastMaxRecordBytes + 2) * 22 + 256; }

  virtual ~RecordEngine() = default;
  // Plans the protection of `plain`, or as much of it as `batch` has room for, and returns that in `taken`. Both
  // `plain` and `out` are lent until the batch is finished. False: the flow is dead (error() says why).
  virtual bool seal(std::span<const std::byte> plain, WireOut& out, RecordBatch& batch, size_t& taken) noexcept = 0;
  // Opens whole records of `wire` (at most kMostReceived bytes), in place or not, and returns in `taken` how many bytes it is done with; what is
  // left is the beginning of a record. Appends to `plain`, lent until the next call on any engine of the thread; may
  // answer (KeyUpdate, alert) into `out`.
  virtual Opened open(std::span<std::byte> wire, size_t& taken, Pieces& plain, WireOut& out) noexcept = 0;
  virtual void close(WireOut& out) noexcept = 0;   // close_notify
  virtual const char* error() const noexcept = 0;  // "" while the flow is well
  virtual const char* alert() const noexcept { return nullptr; }   // the peer's, if that ended the flow
  virtual uint64_t records_out() const noexcept = 0;
  virtual uint64_t records_in() const noexcept = 0;
  virtual uint64_t key_updates_out() const noexcept { return 0; }
  virtual uint64_t key_updates_in() const noexcept { return 0; }
};

class RecordEngines {
 public:
  virtual ~RecordEngines() = default;
  virtual Expected<std::unique_ptr<RecordEngine>> make(const EngineContext& context) = 0;   // one per flow
  virtual std::unique_ptr<RecordBatch> make_batch() = 0;
  // Two batches may be started at once; they are finished in the order in which they were started, and before any flow
  // that has records in them is opened or closed.
  virtual void start(RecordBatch&) noexcept {}
  virtual void finish(RecordBatch&) noexcept {}   // empty again; a flow whose record failed has an error() now
  // Whether it pays to have a second batch under way, and to gather the records of several flows.
  virtual bool overlaps() const noexcept { return false; }
  virtual bool gathers() const noexcept { return false; }
  // {device, driver, version, device_class, features[], record_counter?, counters{}}: asked of what does the work.
  // Counters called queue_* are this thread's, the others the device's, both since make().
  virtual Json facts() const = 0;
};

struct EngineConfig {
  const CellConfig* cell = nullptr;
  Role role = Role::client;
  uint32_t thread = 0, threads = 1;   // of this worker
  std::string module;                 // path of the engine's shared object; empty: beside this program
};

}  // namespace fsbl
