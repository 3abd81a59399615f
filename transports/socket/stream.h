// What a session adds to a TCP flow: a handshake and protected bytes. SocketDriver owns the socket and calls this;
// a Stream never touches a descriptor, so a record engine can take its place after the handshake.
#pragma once
#include <memory>
#include <string>

#include "harness/transport/driver.h"
#include "harness/transport/record_engine.h"

namespace fsbl {

class Stream {
 public:
  enum class State : uint8_t { handshaking, open, failed };
  virtual ~Stream() = default;

  // Takes handshake bytes from `in` and leaves what must be sent in `out`. First call: with an empty `in`.
  // Bytes after the handshake's end stay in `in`.
  virtual State handshake(WireIn& in, WireOut& out) noexcept = 0;
  // As a RecordEngine has them.
  virtual bool seal(std::span<const std::byte> plain, WireOut& out, RecordBatch& batch, size_t& taken) noexcept = 0;
  virtual bool failed() noexcept = 0;   // asked after its batch was finished
  virtual Opened open(std::span<std::byte> wire, size_t& taken, Pieces& plain, WireOut& out) noexcept = 0;
  virtual void close(WireOut& out) noexcept = 0;
  virtual std::string error() const = 0;

  virtual FlowReport report() const = 0;
  // {reason, by: "us"|"peer"} when the handshake was refused, else null. Asked after `failed`, or after `open`
  // returned failed (TLS 1.3 clients learn late).
  virtual Json refusal() const = 0;
};

class StreamFactory {   // one per load thread
 public:
  virtual ~StreamFactory() = default;
  virtual Expected<std::unique_ptr<Stream>> make() = 0;
  virtual RecordEngines& engines() = 0;
};

}  // namespace fsbl
