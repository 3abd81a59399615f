#include "harness/agent/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <vector>

#include "harness/core/file.h"

namespace fsbl {
namespace {

constexpr unsigned kNobody = 65534;
constexpr int kProgramFd = 256;  // lowest number for open_worker()

// The value of SUDO_UID or SUDO_GID, or nobody. getenv() and from_chars() neither allocate nor lock.
unsigned sudo_id(const char* variable) noexcept {
  const char* text = std::getenv(variable);
  if (!text) return kNobody;
  unsigned id = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, id);
  return error == std::errc() && stop == end && stop != text && id != 0 && id != ~0u ? id : kNobody;
}

int drop_bounding_set() noexcept {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return errno;
  return 0;
}

// Raw system calls: glibc's wrappers signal the other threads that this child of fork() no longer has.
int change_user() noexcept {
  if (geteuid() != 0) return 0;
  const unsigned gid = sudo_id("SUDO_GID"), uid = sudo_id("SUDO_UID");
  // EINVAL: this user namespace doesn't have that id. Asking is surer than reading its map.
  if (syscall(SYS_setresgid, gid, gid, gid) != 0) return errno == EINVAL ? 0 : errno;
  if (syscall(SYS_setgroups, 0, nullptr) != 0) return errno;
  if (syscall(SYS_setresuid, uid, uid, uid) != 0) return errno;
  return 0;
}

int drop_capabilities() noexcept {
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
  return syscall(SYS_capset, &header, none) == 0 ? 0 : errno;
}

}  // namespace

int drop_worker_privileges() noexcept {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  const rlimit no_core{0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) return errno;
  // In this order: each step needs a capability that a later one takes away.
  for (const auto step : {drop_bounding_set, change_user, drop_capabilities})
    if (const int error_number = step()) return error_number;
  return 0;
}

Expected<SandboxReport> parse_sandbox(const std::string& status, const std::string& what) {
  std::map<std::string, std::vector<std::string>> fields;
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream words(line.substr(colon + 1));
    auto& values = fields[line.substr(0, colon)];
    for (std::string word; words >> word;) values.push_back(word);
  }
  for (const char* needed : {"Uid", "Gid", "NoNewPrivs", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    if (fields[needed].empty()) return fault(what, std::string("no field ") + needed);

  const auto none_zero = [&](const char* field) {
    return std::ranges::none_of(fields[field], [](const std::string& id) { return id == "0"; });
  };
  const auto empty_set = [&](const char* field) {
    return fields[field].size() == 1 && fields[field][0].find_first_not_of('0') == std::string::npos;
  };
  SandboxReport report;
  const std::string& uid = fields["Uid"][0];
  const auto [stop, error] = std::from_chars(uid.data(), uid.data() + uid.size(), report.uid);
  if (error != std::errc() || stop != uid.data() + uid.size()) return fault(what, "Uid is '" + uid + "'");
  report.dropped_user = none_zero("Uid");
  report.dropped_groups = none_zero("Gid") && none_zero("Groups");
  report.no_new_privs = fields["NoNewPrivs"] == std::vector<std::string>{"1"};
  report.caps_dropped =
      empty_set("CapInh") && empty_set("CapPrm") && empty_set("CapEff") && empty_set("CapAmb");
  report.bounding_dropped = empty_set("CapBnd");
  return report;
}

Expected<SandboxReport> read_sandbox(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  FSBL_ASSIGN(const std::string status, read_file(path, 1 << 16));
  return parse_sandbox(status, "read " + path);
}

Expected<UniqueFd> open_worker(const std::filesystem::path& program) {
  const std::string what = "open worker " + program.string();
  const UniqueFd opened(::open(program.c_str(), O_PATH | O_CLOEXEC));
  if (!opened) return bad_input(what, errno_text(errno));
  struct stat info {};
  if (fstat(opened.get(), &info) != 0) return fault_errno(what, errno);
  if (!S_ISREG(info.st_mode) || !(info.st_mode & S_IXOTH))
    return bad_input(what, "not a program that everybody may run", "chmod a+rx " + program.string());
  UniqueFd lifted(fcntl(opened.get(), F_DUPFD_CLOEXEC, kProgramFd));
  if (!lifted) return fault_errno(what, errno);
  return lifted;
}

std::string worker_exec_path(int program_fd) {
  return "/proc/self/fd/" + std::to_string(program_fd);
}

}  // namespace fsbl
