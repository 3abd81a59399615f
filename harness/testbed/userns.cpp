#include "harness/testbed/userns.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "harness/core/file.h"
#include "harness/testbed/testbed.h"

namespace fsbl {
namespace {

int write_text(const char* path, const char* text, size_t length) noexcept {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error_number = ::write(file, text, length) == static_cast<ssize_t>(length) ? 0 : errno;
  ::close(file);
  return error_number;
}

// Writes the map of one line "0 <id> 1".
int write_map(const char* path, unsigned id) noexcept {
  char line[32] = "0 ";
  char* end = std::to_chars(line + 2, line + sizeof line - 2, id).ptr;
  *end++ = ' ';
  *end++ = '1';
  return write_text(path, line, static_cast<size_t>(end - line));
}

}  // namespace

int loopback_up() noexcept {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const int error_number = ioctl(socket, SIOCSIFFLAGS, &request) == 0 ? 0 : errno;
  ::close(socket);
  return error_number;
}

UserNamespaceStep try_user_namespace() noexcept {
  const unsigned uid = geteuid(), gid = getegid();
  // EINVAL: other threads. One that was joined may take a moment longer to leave the process.
  int error_number = 0;
  for (int attempt = 0; attempt < 50; ++attempt) {
    error_number = unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) == 0 ? 0 : errno;
    if (error_number != EINVAL) break;
    const timespec nap{0, 2'000'000};
    nanosleep(&nap, nullptr);
  }
  if (error_number) return {"unshare", error_number};
  if ((error_number = write_text("/proc/self/setgroups", "deny", 4))) return {"setgroups", error_number};
  if ((error_number = write_map("/proc/self/uid_map", uid))) return {"uid_map", error_number};
  if ((error_number = write_map("/proc/self/gid_map", gid))) return {"gid_map", error_number};
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return {"mount", errno};
  if ((error_number = loopback_up())) return {"loopback", error_number};
  return {};
}

Error explain(const UserNamespaceStep& step, const std::filesystem::path& proc_sys) {
  const std::string what = "enter a user namespace";
  const auto setting = [&](const char* path) { return read_small(proc_sys / path); };
  if (step.error_number == EINVAL && step.name == std::string_view("unshare"))
    return {ErrorKind::fault, what, "the process has more than one thread", {}};
  if (setting("user/max_user_namespaces") == "0")
    return {ErrorKind::unavailable, what, "user.max_user_namespaces is 0",
            "run as root, or: sudo sysctl user.max_user_namespaces=10000"};
  if (setting("kernel/unprivileged_userns_clone") == "0")
    return {ErrorKind::unavailable, what, "kernel.unprivileged_userns_clone is 0",
            "run as root, or: sudo sysctl kernel.unprivileged_userns_clone=1"};
  // Ubuntu 24.04 lets the namespace be made but gives no capability inside: a later step than unshare says
  // EPERM.
  if (setting("kernel/apparmor_restrict_unprivileged_userns") == "1")
    return {ErrorKind::unavailable, what, "AppArmor restricts unprivileged user namespaces",
            "run as root, or: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"};
  const std::string why = std::string(step.name) + ": " + errno_text(step.error_number);
  if (step.error_number == ENOSPC || step.error_number == EUSERS)
    return {ErrorKind::unavailable, what, why, "raise user.max_user_namespaces, user.max_net_namespaces"};
  return {ErrorKind::unavailable, what, why,
          "run as root; in a container, one that may make namespaces (docker run --privileged)"};
}

Expected<> enter_user_namespace() {
  const UserNamespaceStep failed = try_user_namespace();
  if (failed.name) return tl::unexpected<Error>(explain(failed));
  return {};
}

}  // namespace fsbl
