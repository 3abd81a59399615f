#include "harness/agent/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "harness/agent/sandbox.h"
#include "harness/core/file.h"

namespace fsbl {

WorkerProcess::WorkerProcess(Child child, UniqueFd fd)
    : child_(std::move(child)), fd_(std::move(fd)), channel_(fd_.get(), fd_.get(), "the worker") {}

Expected<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const CellConfig& config) {
  const std::string path = config.worker.binary.empty() ? program_path("fsbl-worker").string() : config.worker.binary;
  FSBL_ASSIGN(const UniqueFd binary, open_worker(path));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return fault_errno("socketpair", errno);
  UniqueFd ours(pair[0]), theirs(pair[1]);
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // Opened here: the worker's user may not be able to enter the folder. Without the file the worker says what is wrong.
  const std::filesystem::path beside = std::filesystem::path(path).parent_path() / ("fsbl-" + config.transport.engine + ".so");
  const UniqueFd module(::open(beside.c_str(), O_RDONLY | O_CLOEXEC));

  SpawnOptions options;
  options.argv = {worker_exec_path(binary.get()), "--channel=3"};
  options.fds = {{null.get(), 0}, {2, 1}, {2, 2}, {theirs.get(), 3}};
  if (module) {
    options.argv.push_back("--module=4");
    options.fds.emplace_back(module.get(), 4);
  }
  for (const auto& [key, value] : config.worker.environment) options.environment.push_back(key + "=" + value);
  options.in_child = drop_worker_privileges;
  auto child = spawn(options);
  if (!child) return tl::unexpected(child.error().in("start the worker " + path));
  std::unique_ptr<WorkerProcess> self(new WorkerProcess(std::move(*child), std::move(ours)));
  theirs.reset();
  FSBL_ASSIGN(const Json hello, self->call({{"op", "hello"}}, 5'000'000'000));
  if (hello.value("protocol", 0) != kProtocolVersion)
    return bad_input("worker " + path, fmt::format("speaks protocol {}, this agent {}", hello.value("protocol", 0), kProtocolVersion),
                     "use a worker of the same major version");
  FSBL_ASSIGN(const SandboxReport sandbox, read_sandbox(self->pid()));
  if (!sandbox.confined()) return fault("start the worker " + path, "it kept privileges");
  return self;
}

// A silent or closed channel usually means a dead worker: say how it died.
Error WorkerProcess::explain(Error error) {
  if (child_.wait(200'000'000)) error.why = "the worker is gone (" + child_.status_text() + ")";
  return error;
}

Expected<Json> WorkerProcess::call(Json request, Nanos timeout) {
  Waiting waiting;
  waiting.timeout = timeout;
  return call(std::move(request), std::move(waiting));
}

Expected<Json> WorkerProcess::call(Json request, Waiting waiting) {
  const std::string what = "worker: " + request.value("op", std::string("?"));
  const uint32_t id = next_id_++;
  if (auto sent = send_request(channel_, id, std::move(request), 5'000'000'000); !sent)
    return tl::unexpected(explain(sent.error().in(what)));
  const Nanos deadline = mono_now_ns() + waiting.timeout;
  size_t next = 0;
  while (!channel_.pending()) {
    Nanos now = mono_now_ns();
    while (next < waiting.moments.size() && now >= waiting.moments[next].at) {
      waiting.moments[next++].run();
      now = mono_now_ns();
    }
    if (now >= deadline) return fault(what, "too late: nothing within the time limit");
    const Nanos until = next < waiting.moments.size() ? std::min(deadline, waiting.moments[next].at) : deadline;
    const timespec timeout{(until - now) / 1'000'000'000, std::max<Nanos>(0, until - now) % 1'000'000'000};
    pollfd polls[3] = {{channel_.read_fd(), POLLIN, 0}, {waiting.controller_fd, POLLIN, 0}, {waiting.watched_fd, POLLIN, 0}};
    if (ppoll(polls, 3, &timeout, nullptr) < 0 && errno != EINTR) return fault_errno(what, errno);
    if (polls[1].revents) return cancelled(what);
    if (polls[2].revents && waiting.on_readable) waiting.on_readable();
  }
  while (next < waiting.moments.size()) waiting.moments[next++].run();  // it ended early: close what was opened
  auto reply = receive_reply(channel_, id, 5'000'000'000);
  if (!reply && reply.error().why.find("it is gone") != std::string::npos) return tl::unexpected(explain(reply.error().in(what)));
  return reply;
}

}  // namespace fsbl
