// The measured window of one load thread: notes what the thread's counters, its CPU time and its sockets said when
// the window opened and closed. Everything expensive happens at those two moments only.
#pragma once
#include <vector>

#include "harness/load/reading.h"

namespace fsbl {

// Bytes that a flow's socket sent again (tcpi_bytes_retrans); 0 without a socket.
uint64_t retransmitted_bytes(const Driver& driver, FlowId flow) noexcept;

class Window {
 public:
  Window(Driver& driver, ThreadReading& reading) : driver_(driver), reading_(reading) {}

  enum class Phase : uint8_t { before, inside, after };
  Phase phase() const noexcept { return phase_; }
  bool inside() const noexcept { return phase_ == Phase::inside; }

  void open(Nanos now) noexcept;
  void close(Nanos now) noexcept;

 private:
  uint64_t retransmits() const noexcept;
  void summarise_tcp() noexcept;

  Driver& driver_;
  ThreadReading& reading_;
  Phase phase_ = Phase::before;
  uint64_t cpu_at_open_ = 0, sent_at_open_ = 0, received_at_open_ = 0, retransmits_at_open_ = 0;
};

}  // namespace fsbl
