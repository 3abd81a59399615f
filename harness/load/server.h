// The server's load thread: accepts its flows, answers or sinks or sources, until every peer has closed.
#pragma once
#include <vector>

#include "harness/load/reading.h"
#include "harness/load/server_flow.h"
#include "harness/load/window.h"

namespace fsbl {

class ServerThread {
 public:
  ServerThread(Driver& driver, const LoadThreadConfig& config);

  // Until every flow was greeted and answered, or failed, or the deadline.
  ConnectOutcome accept(Nanos deadline);
  // The whole timeline; returns when all flows are closed or at timeline.drain_limit.
  ThreadReading run(const Timeline& timeline);

 private:
  struct Slot {
    ServerFlow flow;
    bool open = false, failed = false, lent = false, waiting = false;
    size_t lent_bytes = 0;
  };
  void handle(const Event& event) noexcept;
  void send(FlowId id, int turns) noexcept;
  void fail(FlowId id, const std::string& why);
  bool drained() const noexcept;

  Driver& driver_;
  LoadThreadConfig config_;
  std::vector<Slot> slots_;              // by FlowId; reserved for all flows
  std::vector<FlowId> writable_;         // down streams that the kernel takes more from; reserved
  std::vector<Event> events_;
  ConnectOutcome outcome_;
  ThreadReading reading_;
  Window window_;
  size_t greeted_ = 0, ended_ = 0;
  bool accepting_ = true;
};

}  // namespace fsbl
