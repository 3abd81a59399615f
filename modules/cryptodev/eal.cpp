#include "modules/cryptodev/eal.h"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

namespace fsbl {
namespace {

// "0@(0-3,8)": DPDK's one logical core, on every CPU that this process may use.
std::string lcores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    int last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    list += (list.empty() ? "" : ",") + (last > cpu ? fmt::format("{}-{}", cpu, last) : std::to_string(cpu));
    cpu = last;
  }
  return "0@(" + list + ")";
}

// Enough of it for our pools; with fewer free hugepages DPDK would fail half-way.
bool has_hugepages() {
  constexpr unsigned long kEnoughKib = 64 << 10;
  unsigned long free_pages = 0, page_kib = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    sscanf(line.c_str(), "HugePages_Free: %lu", &free_pages);
    sscanf(line.c_str(), "Hugepagesize: %lu", &page_kib);
  }
  return free_pages * page_kib >= kEnoughKib;
}

// DPDK makes <runtime folder>/dpdk/<prefix> even where it keeps nothing there, and never removes it; what the first user
// made under /tmp, the next may not enter. So it gets a folder of its own, which goes as soon as DPDK has made its two.
class RuntimeFolder {
 public:
  explicit RuntimeFolder(const std::string& prefix) {
    std::error_code error;
    std::string path = std::filesystem::temp_directory_path(error).string() + "/fsbl-dpdk-XXXXXX";
    if (error || !mkdtemp(path.data())) return;   // then DPDK's own choice has to do
    paths_ = {path + "/dpdk/" + prefix, path + "/dpdk", path};
    if (const char* old = getenv(kVariable)) old_ = old;
    set_ = setenv(kVariable, path.c_str(), 1) == 0;
  }
  ~RuntimeFolder() {
    for (const std::string& path : paths_) rmdir(path.c_str());   // where DPDK failed before it made all of them
    if (!set_) return;
    if (old_) setenv(kVariable, old_->c_str(), 1);
    else unsetenv(kVariable);
  }
  // True: it is gone.
  bool remove() {
    while (!paths_.empty() && rmdir(paths_.front().c_str()) == 0) paths_.erase(paths_.begin());
    return paths_.empty();
  }

 private:
  static constexpr const char* kVariable = "RUNTIME_DIRECTORY";
  std::vector<std::string> paths_;   // innermost first
  std::optional<std::string> old_;
  bool set_ = false;
};

}  // namespace

Eal& Eal::instance() {
  static Eal* eal = new Eal;   // EAL's threads outlive static destructors
  return *eal;
}

long Eal::write_log(void* self, const char* text, size_t bytes) {
  auto* eal = static_cast<Eal*>(self);
  const std::lock_guard lock(eal->log_mutex_);
  eal->log_.append(text, std::min(bytes, kLogBytes - std::min(kLogBytes, eal->log_.size())));
  return static_cast<long>(bytes);
}

std::string Eal::take_log() {
  const std::lock_guard lock(log_mutex_);
  std::string text;
  for (const char c : log_) text += c == '\n' ? ' ' : c;
  log_.clear();
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

Expected<> Eal::start(const DeviceRequest& request) {
  if (!tried_) {
    tried_ = true;
    if (auto started = initialise(request); !started) failure_ = std::move(started).error();
    else running_ = true;
    allowed_pci_ = request.pci;
  }
  const std::string what = "open cryptodev " + request.text;
  if (!running_) return tl::unexpected(failure_.in(what));
  for (const std::string& address : request.pci)
    if (std::ranges::find(allowed_pci_, address) == allowed_pci_.end())
      return unavailable(what, "DPDK was started in this process without PCI device " + address,
                         "open the PCI device first, or in a process of its own");
  return {};
}

Expected<> Eal::initialise(const DeviceRequest& request) {
  FILE* stream = fopencookie(this, "w", {.read = nullptr, .write = write_log, .seek = nullptr, .close = nullptr});
  if (!stream) return fault_errno("take DPDK's log", errno);
  setvbuf(stream, nullptr, _IONBF, 0);
  if (rte_openlog_stream(stream) != 0) return fault("take DPDK's log", "rte_openlog_stream refuses it");

  const std::string prefix = fmt::format("fsbl-{}", getpid());
  std::vector<std::string> args = {"fsbl", "--no-telemetry", "--log-level", "error", "--lcores", lcores(),
                                   "--file-prefix", prefix};
  if (has_hugepages()) {
    args.push_back("--in-memory");
  } else {
    // Address space, not memory: pages are taken when a pool uses them. 65 536 sessions of the largest driver fit.
    args.insert(args.end(), {"--no-huge", "--no-shconf", "-m", "512"});
  }
  if (!request.is_pci()) args.push_back("--no-pci");
  for (const std::string& address : request.pci) {
    args.push_back("-a");
    args.push_back(address + (request.args.empty() ? "" : "," + request.args));
  }
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);

  RuntimeFolder folder(prefix);
  std::atomic<bool> done = false;
  int result = -1, error_number = 0;
  std::thread starting([&] {
    // EAL's interrupt thread inherits this mask: the process's signals stay with the threads that wait for them.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    result = rte_eal_init(static_cast<int>(args.size()), argv.data());
    error_number = rte_errno;
    done = true;
  });
  while (!done && !folder.remove()) usleep(100);   // a process that is killed now leaves it
  starting.join();
  const std::string log = take_log();   // also what it said before it knew its log level
  if (result < 0)
    return unavailable("start DPDK", fmt::format("rte_eal_init: {} ({})", errno_text(error_number), log),
                       "check that libdpdk's own drivers and 512 MiB of address space are there (ulimit -v)");
  return {};
}

}  // namespace fsbl
