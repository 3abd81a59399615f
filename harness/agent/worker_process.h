// The agent's hold on its worker: the process, the frame channel, and what may happen while waiting for it.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "harness/core/process.h"
#include "harness/protocol/frame.h"
#include "harness/scenario/model.h"

namespace fsbl {

class WorkerProcess {
 public:
  // Starts the worker of this installation (or `config.worker.binary`) without privilege.
  static Expected<std::unique_ptr<WorkerProcess>> start(const CellConfig& config);

  Expected<Json> call(Json request, Nanos timeout);

  // While the worker works: at each moment (CLOCK_MONOTONIC) its function runs, once, in order; `watched_fd` calls
  // `on_readable` when readable (-1: none); a sign of life from the controller means that the round is over.
  struct Moment {
    Nanos at;
    std::function<void()> run;
  };
  struct Waiting {
    Nanos timeout = 0;
    std::vector<Moment> moments;
    int watched_fd = -1;
    std::function<void()> on_readable;
    int controller_fd = -1;
  };
  Expected<Json> call(Json request, Waiting waiting);

  pid_t pid() const { return child_.pid(); }

 private:
  WorkerProcess(Child child, UniqueFd fd);
  Error explain(Error error);

  Child child_;
  UniqueFd fd_;
  Channel channel_;
  uint32_t next_id_ = 1;
};

}  // namespace fsbl
