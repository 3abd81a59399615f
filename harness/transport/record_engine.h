// A record engine protects the TLS records of one flow once the handshake is done. In the worker, on the load
// thread: no allocation, lock, log or exception; never blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

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
  void put(const void* from, size_t n) noexcept {
    if (n > capacity - size) {
      overflow = true;
      return;
    }
    std::memcpy(data + size, from, n);
    size += n;
  }
};

struct EngineContext {
  ssl_st* ssl = nullptr;   // handshake finished; owned by the session
};

enum class Opened : uint8_t { ok, closed, failed };

class RecordEngine {
 public:
  static constexpr size_t kMaxRecordBytes = 16384;
  // Room that seal() of `bytes` needs: a header, a type byte and a tag (RFC 8446, 5.2) per record, and some
  // slack for a KeyUpdate.
  static constexpr size_t sealed_bound(size_t bytes) { return bytes + (bytes / kMaxRecordBytes + 2) * 64 + 256; }

  virtual ~RecordEngine() = default;
  // Protects all of `plain`; false: the flow is dead (error() says why).
  virtual bool seal(std::span<const std::byte> plain, WireOut& out) noexcept = 0;
  // Opens whole records from `in` into `plain` and returns how many bytes came out in `bytes`; may answer
  // (KeyUpdate) into `out`. `plain` must have room for in.size + kMaxRecordBytes.
  virtual Opened open(WireIn& in, std::span<std::byte> plain, size_t& bytes, WireOut& out) noexcept = 0;
  virtual void close(WireOut& out) noexcept = 0;   // close_notify
  virtual const char* error() const noexcept = 0;
  virtual uint64_t records_out() const noexcept = 0;
  virtual uint64_t records_in() const noexcept = 0;
};

}  // namespace fsbl
