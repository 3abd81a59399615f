#include <fcntl.h>

#include <cerrno>

#include "harness/core/fd.h"
#include "harness/core/file.h"
#include "harness/testbed/link.h"

namespace fsbl {
namespace {

// "net.ipv4.conf.eth0/1.rp_filter" or "net/ipv4/conf/eth0.1/rp_filter" → "net/ipv4/conf/eth0.1/rp_filter", as
// sysctl(8) has it: the first of '.' and '/' is the separator; after a '.', the two change places.
std::string sysctl_path(std::string name) {
  const size_t first = name.find_first_of("./");
  if (first == std::string::npos || name[first] == '/') return name;
  for (char& c : name) c = c == '.' ? '/' : c == '/' ? '.' : c;
  return name;
}

Expected<> check_path(const std::string& path, const std::string& what) {
  if (!path.starts_with("net/"))
    return bad_input(what, "only net.* is per namespace", "set host-wide ones before the run, outside fsbl");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != part.npos)
      return bad_input(what, "not the name of a sysctl");
    begin = end + 1;
  }
  return {};
}

std::string fix_for(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "use one that this namespace has: not every net.* sysctl is per namespace";
    case EINVAL:
      return "use a value that the kernel accepts";
    case EROFS:
      return "mount /proc/sys read-write (container: run it privileged)";
    default:
      return {};
  }
}

}  // namespace

Expected<std::map<std::string, std::string>> set_sysctls(const std::map<std::string, std::string>& values) {
  // All names first: a bad one must not leave half of them set.
  for (const auto& [name, value] : values) FSBL_TRY(check_path(sysctl_path(name), "set sysctl " + name));
  std::map<std::string, std::string> now;
  for (const auto& [name, value] : values) {
    const std::string what = "set sysctl " + name + " = " + value;
    const std::string path = "/proc/sys/" + sysctl_path(name);
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const ssize_t taken = file ? ::write(file.get(), value.data(), value.size()) : -1;
    if (taken < 0) return fault_errno(what, errno, fix_for(errno));
    if (static_cast<size_t>(taken) != value.size())
      return fault(what, "the kernel took only a part of the value");
    FSBL_ASSIGN(const std::string text, read_file(path, 1 << 16));
    now[name] = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  }
  return now;
}

}  // namespace fsbl
