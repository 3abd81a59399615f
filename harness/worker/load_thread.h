// One load thread, pinned to one CPU. Commands come from the worker's main thread, one at a time, never while it
// measures.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "harness/core/error.h"
#include "harness/load/client.h"
#include "harness/load/server.h"

namespace fsbl {

class LoadThread {
 public:
  // Starts the thread on `cpu`; `numa_node` binds its memory (-1: not).
  static Expected<std::unique_ptr<LoadThread>> start(int cpu, int numa_node);
  ~LoadThread();

  // Runs `work` on the thread; wait() returns when it is done.
  void post(std::function<void()> work);
  void wait();

  std::unique_ptr<Driver> driver;
  std::unique_ptr<ClientThread> client;   // one of the two
  std::unique_ptr<ServerThread> server;
  uint16_t port = 0;
  Expected<> status;                      // of the last set-up step
  ConnectOutcome outcome;
  ThreadReading reading;

 private:
  LoadThread() = default;
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool stop_ = false;
  std::thread thread_;                    // last: starts when the rest exists
};

}  // namespace fsbl
