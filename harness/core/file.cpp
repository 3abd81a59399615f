#include "harness/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <random>

#include "harness/core/fd.h"
#include "harness/core/scope_exit.h"

namespace fsbl {
namespace fs = std::filesystem;

Expected<std::string> read_file(const fs::path& path, uint64_t limit_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return bad_input("read " + path.string(), errno_text(errno));
  struct stat info {};
  if (fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode)) return bad_input("read " + path.string(), "is a folder");
  std::string data;
  char chunk[65536];
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return bad_input("read " + path.string(), errno_text(errno));
    if (n == 0) return data;
    if (data.size() + static_cast<size_t>(n) > limit_bytes)
      return bad_input("read " + path.string(), fmt::format("larger than {} bytes", limit_bytes));
    data.append(chunk, static_cast<size_t>(n));
  }
}

std::string read_small(const fs::path& path, const std::string& fallback) {
  auto text = read_file(path, 1 << 20);
  if (!text) return fallback;
  const size_t last = text->find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return {};
  text->resize(last + 1);
  return *text;
}

static Expected<> write_all(int fd, std::string_view data, const std::string& what) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fault_errno(what, errno, errno == ENOSPC ? "free some space, or choose another --out" : "");
    data.remove_prefix(static_cast<size_t>(n));
  }
  if (fsync(fd) != 0) return fault_errno(what, errno);
  return {};
}

Expected<> write_file_atomic(const fs::path& path, std::string_view data, unsigned mode) {
  const std::string what = "write " + path.string();
  const fs::path dir = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path temporary = dir / fmt::format(".{}.{:08x}", path.filename().string(), std::random_device{}());

  UniqueFd fd(::open(dir.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (fd) {
    FSBL_TRY(write_all(fd.get(), data, what));
    const std::string self = fmt::format("/proc/self/fd/{}", fd.get());
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
    if (errno == EEXIST && linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
      const int error_number = errno;
      ::unlink(temporary.c_str());
      return fault_errno(what, error_number);
    }
  }
  fd.reset(::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode));
  if (!fd) return fault_errno(what, errno);
  ScopeExit remove([&] { ::unlink(temporary.c_str()); });
  FSBL_TRY(write_all(fd.get(), data, what));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fault_errno(what, errno);
  remove.dismiss();
  return {};
}

static fs::path self_dir() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

fs::path data_dir() {
  if (const char* set = std::getenv("FSBL_DATA_DIR")) return set;
  fs::path dir = self_dir();
  if (fs::path installed = dir.parent_path() / "share" / "fsbl"; fs::exists(installed / "scenarios")) return installed;
  for (fs::path up = dir; up.has_relative_path(); up = up.parent_path())
    if (fs::exists(up / "scenarios" / "fsbl") && fs::exists(up / "harness")) return up;
  return dir;
}

fs::path program_path(std::string_view name) {
  const fs::path dir = self_dir();
  if (fs::path beside = dir / name; fs::exists(beside)) return beside;
  return dir.parent_path() / "libexec" / "fsbl" / name;
}

}  // namespace fsbl
