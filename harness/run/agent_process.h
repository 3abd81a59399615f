// The controller's hold on the two agents of a testbed. Requests go to both sides before either is waited for, so
// that the slower side sets the pace, not the sum.
#pragma once
#include <array>
#include <memory>

#include "harness/core/process.h"
#include "harness/protocol/frame.h"
#include "harness/testbed/testbed.h"

namespace fsbl {

class AgentProcess {
 public:
  // Starts fsbl-agent inside the given namespaces and greets it.
  static Expected<std::unique_ptr<AgentProcess>> start(Role role, const std::vector<int>& namespaces);

  Expected<> send(Json request);
  Expected<Json> receive(Nanos timeout);        // the reply to the last send()
  Expected<Json> call(Json request, Nanos timeout);
  const Json& hello() const { return hello_; }
  pid_t pid() const { return child_.pid(); }
  int fd() const { return fd_.get(); }          // readable: a reply, or its end

 private:
  AgentProcess(Role role, Child child, UniqueFd fd);
  Error explain(Error error);

  Role role_;
  Child child_;
  UniqueFd fd_;
  Channel channel_;
  uint32_t id_ = 0;
  Json hello_;
};

// Index 0: client, 1: server.
template <class T>
using BothSides = std::array<T, 2>;
constexpr size_t index_of(Role role) { return role == Role::client ? 0 : 1; }

// A running testbed with its agents; dropping it removes everything.
class LiveTestbed {
 public:
  static Expected<std::unique_ptr<LiveTestbed>> start(const CellConfig& config);
  AgentProcess& agent(Role role) { return *agents_[index_of(role)]; }
  const BothSides<Json>& hosts() const { return hosts_; }   // replies to `host`
  // Both replies, or the error that came first: that is the cause (a client fails because its server died), and
  // after it there is no waiting for the other side.
  Expected<BothSides<Json>> both(const BothSides<Json>& requests, Nanos timeout);

 private:
  Role first_to_answer(Nanos deadline);

  std::optional<NetnsTestbed> netns_;
  BothSides<std::unique_ptr<AgentProcess>> agents_;
  BothSides<Json> hosts_;
};

}  // namespace fsbl
