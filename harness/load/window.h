// The measured window of one load thread: notes what the thread's counters, its CPU time and its sockets said when
// the window opened and closed. Everything expensive happens at those two moments only.
#pragma once
#include <vector>

#include "harness/load/reading.h"

namespace fsbl {

// Adds what a flow moved over the whole round: wire bytes, those sent again (tcpi_bytes_retrans), records.
void add_flow_totals(const Driver& driver, FlowId flow, ThreadReading& reading);

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
