#include "harness/run/agent_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "harness/core/cancel.h"
#include "harness/core/file.h"
#include "harness/scenario/load.h"

namespace fsbl {

constexpr Nanos kSecond = 1'000'000'000;

AgentProcess::AgentProcess(Role role, Child child, UniqueFd fd)
    : role_(role), child_(std::move(child)), fd_(std::move(fd)),
      channel_(fd_.get(), fd_.get(), fmt::format("the {}'s agent", to_text(role))) {}

Expected<std::unique_ptr<AgentProcess>> AgentProcess::start(Role role, const std::vector<int>& namespaces) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return fault_errno("socketpair", errno);
  UniqueFd ours(pair[0]), theirs(pair[1]);
  SpawnOptions options;
  options.argv = {program_path("fsbl-agent").string(), "--stdio"};
  options.fds = {{theirs.get(), 0}, {theirs.get(), 1}, {2, 2}};
  options.namespaces = namespaces;
  FSBL_ASSIGN(Child child, spawn(options));
  std::unique_ptr<AgentProcess> self(new AgentProcess(role, std::move(child), std::move(ours)));
  theirs.reset();
  FSBL_ASSIGN(self->hello_, self->call({{"op", "hello"}, {"protocol", kProtocolVersion}}, 10 * kSecond));
  return self;
}

Error AgentProcess::explain(Error error) {
  if (error.why.find("it is gone") != std::string::npos && child_.wait(200'000'000))
    error.why = "the agent is gone (" + child_.status_text() + ")";
  return error.in(std::string(to_text(role_)));
}

Expected<> AgentProcess::send(Json request) {
  auto sent = send_request(channel_, ++id_, std::move(request), 10 * kSecond);
  if (!sent) return tl::unexpected(explain(sent.error()));
  return {};
}

Expected<Json> AgentProcess::receive(Nanos timeout) {
  auto reply = receive_reply(channel_, id_, timeout);
  if (!reply) return tl::unexpected(explain(reply.error()));
  return reply;
}

Expected<Json> AgentProcess::call(Json request, Nanos timeout) {
  FSBL_TRY(send(std::move(request)));
  return receive(timeout);
}

Expected<BothSides<Json>> LiveTestbed::both(const BothSides<Json>& requests, Nanos timeout) {
  // The server hears first: it listens, or starts its timeline, before the client acts.
  for (Role role : {Role::server, Role::client}) FSBL_TRY(agent(role).send(requests[index_of(role)]));
  const Nanos deadline = mono_now_ns() + timeout;
  const Role first = first_to_answer(deadline);
  BothSides<Json> replies;
  for (Role role : {first, first == Role::client ? Role::server : Role::client}) {
    FSBL_ASSIGN(replies[index_of(role)], agent(role).receive(std::max<Nanos>(0, deadline - mono_now_ns())));
  }
  return replies;
}

// The client when neither side answers in time or a stop was asked for: its receive() says so.
Role LiveTestbed::first_to_answer(Nanos deadline) {
  pollfd polls[3] = {{agent(Role::client).fd(), POLLIN, 0}, {agent(Role::server).fd(), POLLIN, 0}, {cancel_fd(), POLLIN, 0}};
  const Nanos left = std::max<Nanos>(0, deadline - mono_now_ns());
  const timespec limit{left / kSecond, left % kSecond};
  ppoll(polls, 3, &limit, nullptr);
  return polls[1].revents && !polls[0].revents ? Role::server : Role::client;
}

Expected<std::unique_ptr<LiveTestbed>> LiveTestbed::start(const CellConfig& config) {
  auto self = std::make_unique<LiveTestbed>();
  FSBL_ASSIGN(auto netns, NetnsTestbed::create(config.testbed));
  self->netns_.emplace(std::move(netns));
  BothSides<Json> requests;
  for (Role role : {Role::client, Role::server}) {
    FSBL_ASSIGN(self->agents_[index_of(role)], AgentProcess::start(role, self->netns_->namespace_fds(role)));
    const TestbedHost& host = self->netns_->host(role);
    requests[index_of(role)] = {{"op", "host"}, {"role", to_text(role)}, {"link", host.link},
                                {"address4", host.address4}, {"peer4", host.peer4}, {"address6", host.address6},
                                {"peer6", host.peer6}, {"config", to_json(config)}};
  }
  FSBL_ASSIGN(self->hosts_, self->both(requests, 20 * kSecond));
  return self;
}

}  // namespace fsbl
