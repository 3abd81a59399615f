// The client's load thread: connects its flows, then runs the closed-loop request-response or the stream shape.
//
// Request-response: one request outstanding a flow. `sent` is taken before the first byte is handed to the driver
// (so before it is encrypted), `done` when the whole reply is authenticated and taken.
#pragma once
#include <vector>

#include "harness/load/reading.h"
#include "harness/load/window.h"

namespace fsbl {

class ClientThread {
 public:
  ClientThread(Driver& driver, const LoadThreadConfig& config);

  // Connects, greets and waits for the first authenticated bytes of every flow. With `first_alone` one flow goes
  // ahead of the others (so that its session ticket is there for them).
  ConnectOutcome connect(uint16_t port, Nanos deadline, bool first_alone);
  ThreadReading run(const Timeline& timeline);

 private:
  enum class State : uint8_t { connecting, greeting, idle, busy, closing, closed, failed };
  struct Slot {
    State state = State::connecting;
    bool lent = false, waiting = false;
    Hello hello;
    Ready ready;
    size_t ready_bytes = 0;
    Verifier verifier;
    uint64_t position = 0;               // in the pattern, of the next byte to send
    uint64_t request_left = 0, reply_left = 0;
    Nanos sent_at = 0;
  };

  void connect_some(uint32_t count, uint16_t port, Nanos deadline);
  void handle(const Event& event) noexcept;
  void greet(FlowId id) noexcept;
  void take(FlowId id, std::span<const std::byte> data) noexcept;
  void next_request(FlowId id) noexcept;
  void push(FlowId id, int turns) noexcept;
  void finish_all() noexcept;
  void fail(FlowId id, const std::string& why);
  bool settled(const Slot& slot) const { return slot.state >= State::idle; }

  Driver& driver_;
  LoadThreadConfig config_;
  std::vector<Slot> slots_;
  std::vector<FlowId> writable_;
  std::vector<Event> events_;
  ConnectOutcome outcome_;
  ThreadReading reading_;
  Window window_;
  size_t settled_ = 0, busy_ = 0, ended_ = 0;
  bool connecting_ = true, issuing_ = false;
};

}  // namespace fsbl
