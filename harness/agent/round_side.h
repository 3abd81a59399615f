// One side of one round in the agent: tunnel, session, worker, probes, witnesses. Fresh for every round; the
// destructor tears everything down.
#pragma once
#include <memory>

#include "harness/agent/worker_process.h"
#include "harness/probe/host_probes.h"
#include "harness/transport/registry.h"

namespace fsbl {

class RoundSide {
 public:
  RoundSide(Role role, const CellConfig& config, const Device& link, int controller_fd);
  ~RoundSide();

  Expected<Json> prepare();
  Expected<Json> up(const Json& request);
  Expected<Json> establish();
  Expected<Json> start_worker(const Json& request);
  Expected<Json> connect(const Json& request);
  Expected<Json> measure(const Json& request);

 private:
  bool wants(const char* probe) const;
  bool in_process() const { return session_descriptor_ && session_descriptor_->in_process; }
  Expected<> witness(std::pair<Counters, Counters>& into);
  Expected<Json> call_worker(Json request, WorkerProcess::Waiting waiting);
  LayerProof prove_link() const;
  Json interface_reading(const std::vector<std::pair<std::string, uint64_t>>& after) const;

  Role role_;
  CellConfig config_;
  Attachment attachment_;
  int controller_fd_;
  const SessionDescriptor* session_descriptor_ = nullptr;
  std::unique_ptr<Side> tunnel_, session_;
  std::unique_ptr<WorkerProcess> worker_;
  std::unique_ptr<PerfProbe> perf_;
  std::unique_ptr<LinkCapture> capture_;
  std::string canary_;
  std::pair<Counters, Counters> before_;            // tunnel, session
  std::vector<std::pair<std::string, uint64_t>> interface_before_;
  Json connected_;
};

Json to_json(const Device& device);

}  // namespace fsbl
