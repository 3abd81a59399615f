#include "transports/wireguard/daemon.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>

#include "harness/identity/svid.h"

namespace fsbl::wireguard {
namespace {

constexpr Nanos kStartLimit = 5'000'000'000;  // from exec to the first answer; some 20 ms in practice
constexpr Nanos kAnswerLimit = 2'000'000'000;
constexpr Nanos kPollEvery = 5'000'000;
constexpr size_t kLogBytes = 64 * 1024;
constexpr size_t kLastWords = 400;  // of the log, in an error

void nap(Nanos duration) {
  const timespec time{duration / 1'000'000'000, duration % 1'000'000'000};
  nanosleep(&time, nullptr);
}

// A log that can't grow: further writes fail, which the daemon ignores, where a full pipe would block it.
Expected<UniqueFd> sealed_log() {
  UniqueFd log(memfd_create("wireguard-go log", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!log || ftruncate(log.get(), kLogBytes) != 0 ||
      fcntl(log.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)
    return fault_errno("make log of wireguard-go", errno);
  return log;
}

// Between fork and exec: system calls only.
int hide_run_directory(const char* directory) {
  if (unshare(CLONE_NEWNS) != 0) return errno;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=64k") != 0)
    return errno;
  return 0;
}

}  // namespace

Expected<Daemon> Daemon::start(const std::string& program, const std::string& device,
                               const std::vector<int>& cpus) {
  // "/var/run" is an absolute link to "/run" on most hosts, and /proc/<pid>/root must not follow such a link.
  std::error_code failed;
  const std::string run = std::filesystem::canonical("/var/run", failed).string();
  if (failed) return fault("start " + program, "/var/run: " + failed.message());

  Daemon daemon;
  FSBL_ASSIGN(daemon.log_, sealed_log());
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnOptions options;
  options.argv = {program, "-f", device};
  options.environment = {"LOG_LEVEL=error", "WG_TUN_FD=", "WG_UAPI_FD="};
  options.fds = {{null.get(), 0}, {daemon.log_.get(), 1}, {daemon.log_.get(), 2}};
  options.cpus = cpus;
  options.in_child = [&run] { return hide_run_directory(run.c_str()); };
  FSBL_ASSIGN(daemon.child_, spawn(options));
  daemon.socket_ = "/proc/" + std::to_string(daemon.pid()) + "/root" + run + "/wireguard/" + device + ".sock";

  const Nanos deadline = mono_now_ns() + kStartLimit;
  for (;;) {
    // Looked at before it is asked: the answer of one that had ended then says how it ended.
    const bool over = !daemon.alive() || mono_now_ns() > deadline;
    auto state = daemon.state();
    if (state) return daemon;
    if (over) return tl::unexpected(state.error().in("start " + program));
    nap(kPollEvery);
  }
}

Expected<> Daemon::configure(const SecretKey& key, uint16_t listen_port, const PeerConfig& peer) {
  // Bringing the device up makes the daemon bind some port, a little later. Only then is a new port bound
  // before the daemon answers; a handshake that arrived earlier would be lost and repeated after 5 s.
  const Nanos deadline = mono_now_ns() + kStartLimit;
  for (;;) {
    FSBL_ASSIGN(const DeviceState now, state());
    if (now.listen_port != 0) break;
    if (mono_now_ns() > deadline)
      return tl::unexpected(
          explain({ErrorKind::fault, "wait for wireguard-go", "it did not bind its UDP socket", {}}));
    nap(kPollEvery);
  }
  std::string request = set_request(key, listen_port, peer);
  auto reply = ask(request);
  wipe(request);
  FSBL_TRY(reply);
  auto done = parse_set_reply(*reply);
  return std::move(done).map_error([&](Error error) { return explain(std::move(error)); });
}

Expected<DeviceState> Daemon::state() {
  FSBL_ASSIGN(std::string reply, ask(get_request()));
  auto parsed = parse_get_reply(reply);
  wipe(reply);
  return std::move(parsed).map_error([&](Error error) { return explain(std::move(error)); });
}

Expected<std::string> Daemon::ask(std::string_view request) {
  return exchange(socket_, request, kAnswerLimit).map_error([&](Error error) {
    return explain(std::move(error));
  });
}

Error Daemon::explain(Error error) {
  if (!alive()) error.why += "; wireguard-go ended: " + child_.status_text();
  std::string log(kLogBytes, '\0');
  const ssize_t n = pread(log_.get(), log.data(), log.size(), 0);
  log.resize(n > 0 ? static_cast<size_t>(n) : 0);
  log.resize(log.find_last_not_of(std::string_view("\0\n", 2)) +
             1);  // unwritten space and the last line's end
  if (log.size() > kLastWords) log.erase(0, log.size() - kLastWords);
  if (!log.empty()) error.why += "; its log ends: " + log;
  return error;
}

std::string find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string folders = path ? path : "";
  folders += ":/usr/bin:/usr/sbin:/usr/local/bin";
  for (size_t at = 0; at < folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string file = folders.substr(at, end - at) + "/" + std::string(name);
    if (file.front() == '/' && file != "/" + std::string(name) && access(file.c_str(), X_OK) == 0)
      return file;
    at = end + 1;
  }
  return {};
}

}  // namespace fsbl::wireguard
