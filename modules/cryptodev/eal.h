// DPDK's environment (EAL), which a process can initialise once. Kept small: no hugepages, no shared configuration, no
// telemetry, nothing left in a runtime folder, nothing that needs a privilege, a home or a writable /run.
//
// DPDK binds the thread that initialises it; so that is a thread of its own, and afterwards no thread of the process
// may run on other CPUs than before. It is never cleaned up: devices of several owners may come and go until the
// process ends, and EAL can't be started twice.
#pragma once
#include <mutex>
#include <string>

#include "harness/core/error.h"
#include "modules/cryptodev/request.h"

namespace fsbl {

class Eal {
 public:
  static Eal& instance();

  // Starts EAL at the first call. Later calls with a PCI device that the first did not allow are refused.
  Expected<> start(const DeviceRequest& request);

  // What DPDK logged as an error since the last call, on one line; empty when it said nothing.
  std::string take_log();

  // Devices are made and closed by one thread at a time.
  std::mutex& mutex() { return mutex_; }

 private:
  Eal() = default;
  Expected<> initialise(const DeviceRequest& request);

  static constexpr size_t kLogBytes = 4096;   // of what DPDK says between two take_log(); more is dropped
  static long write_log(void* self, const char* text, size_t bytes);

  std::mutex mutex_, log_mutex_;
  std::string log_;
  bool tried_ = false;
  Error failure_;
  bool running_ = false;
  std::vector<std::string> allowed_pci_;
};

}  // namespace fsbl
