// The worker's half of a transport: a Driver moves the bytes of many flows on one load thread.
//
// Contract of the hot path (submit, poll, peek, finish): no allocation, lock, log or exception of ours;
// never blocks longer than the deadline. One thread. Bytes are counted where they become authenticated plaintext.
// (OpenSSL 3.0 allocates about four small blocks a record by its own: part of what engine `openssl` costs;
// contract_allocation_test.cpp counts both.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/json.h"
#include "harness/scenario/model.h"

namespace fsbl {

using FlowId = uint32_t;  // index into this driver's flows, 0-based, in open() or accept order

enum class EventKind : uint8_t {
  established,  // connected, and the session's own handshake is done on this side
  readable,     // peek() has bytes
  sent,         // the pending submit() is with the kernel: its buffer is free again
  closed,       // the peer finished sending; what it sent before has been reported
  error,        // the flow is dead and a lent buffer is free; failure() says why; nothing follows
};
struct Event {
  FlowId flow;
  EventKind kind;
};

enum class Submit : uint8_t {
  sent,     // all bytes are with the kernel; the buffer is free
  pending,  // the buffer is lent until the flow's `sent` event
  dead,     // the flow is closed or failed
};

// Cumulative TCP payload bytes of a flow, both ways: what kernel stamps are matched by (METHOD.md).
struct WireOffsets {
  uint64_t out = 0, in = 0;
};

// What a session and its record engine say about one flow; `kind self` evidence.
struct FlowReport {
  Json handshake;             // null without one; {time, peer_id, serial, version, cipher, group, signature, resumed}
  uint64_t records_out = 0, records_in = 0, key_updates_out = 0, key_updates_in = 0;
};

struct DriverContext {
  Role role = Role::client;
  CellConfig config;
  std::string address;        // server: to listen on; client: the server's, inner device
  std::string local_address;  // client: to bind to
  Json secrets;               // Side::worker_secrets()
  uint32_t thread = 0, threads = 1;   // which of this worker's load threads
  std::string engine_module;          // path of the record engine's shared object; empty: beside this program
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Server: listens on an ephemeral port (or `port`) and returns it; flows then appear as `established` events.
  virtual Expected<uint16_t> listen(uint32_t expected_flows, uint16_t port) = 0;
  // Client: starts connecting `count` more flows to `port`; they end as `established` or `error` events.
  virtual Expected<> open(uint32_t count, uint16_t port) = 0;

  // At most one submit may be pending per flow. What is pending goes on its way in poll(), at the latest in the next.
  virtual Submit submit(FlowId flow, std::span<const std::byte> data) noexcept = 0;
  // Waits until something happened or `deadline` (CLOCK_MONOTONIC ns) passed; returns the number of events.
  virtual size_t poll(std::span<Event> events, Nanos deadline) noexcept = 0;
  // The bytes that arrived, in order, in pieces of at least one byte (decrypted in place they have gaps between
  // them); empty when there is nothing now. Taken with the call; lent until the next peek() or poll().
  virtual std::span<const std::span<const std::byte>> peek(FlowId flow) noexcept = 0;
  // No more submits: flushes and closes this direction (TLS: close_notify, then FIN).
  virtual void finish(FlowId flow) noexcept = 0;

  virtual WireOffsets wire(FlowId flow) const noexcept = 0;

  // Outside the measured window.
  virtual uint32_t flows() const = 0;
  virtual FlowReport report(FlowId flow) const = 0;
  virtual Json refusal(FlowId flow) const = 0;               // {reason, alert?}; null when not refused
  virtual std::string failure(FlowId flow) const = 0;        // text of an `error` event
  virtual int socket(FlowId flow) const { return (void)flow, -1; }   // for tcp_info; -1: has none
  virtual Json engine() const { return nullptr; }            // RecordEngines::facts() of this thread
};

}  // namespace fsbl
