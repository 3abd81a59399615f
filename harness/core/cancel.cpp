#include "harness/core/cancel.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

namespace fsbl {

static int signal_fd = -1;

Expected<> cancel_start() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) return fault_errno("signalfd", errno);
  return {};
}

int cancel_fd() { return signal_fd; }

bool cancel_asked() {
  if (signal_fd < 0) return false;
  pollfd ready{signal_fd, POLLIN, 0};
  return poll(&ready, 1, 0) > 0;  // never read: a stop once asked for stays asked for
}

}  // namespace fsbl
