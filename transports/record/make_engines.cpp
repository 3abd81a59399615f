#include "transports/record/make_engines.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "transports/record/off_core.h"
#include "transports/record/record_layer.h"

namespace fsbl {
namespace {

using OpenDevice = std::function<Expected<std::unique_ptr<AeadDevice>>(const AeadConfig&)>;

// The load threads of a process share a device: a crypto device is a thing of the process, and DPDK starts once. When
// as many have it as it has queues (a test drives both sides in one process), another is opened.
Expected<std::shared_ptr<AeadDevice>> share_device(const std::string& engine, const AeadConfig& config,
                                                   const OpenDevice& open) {
  struct Shared {
    std::weak_ptr<AeadDevice> device;
    uint32_t queues_left = 0;
  };
  static std::mutex mutex;
  static std::map<std::string, Shared> devices;
  const std::lock_guard lock(mutex);
  Shared& shared = devices[fmt::format("{} {} {} {}", engine, config.device, static_cast<int>(config.cipher), config.queues)];
  std::shared_ptr<AeadDevice> device = shared.device.lock();
  if (!device || shared.queues_left == 0) {
    FSBL_ASSIGN(device, open(config));
    shared = {device, config.queues};
  }
  --shared.queues_left;
  return device;
}

}  // namespace

Expected<std::unique_ptr<RecordEngines>> make_aead_engines(const EngineConfig& config, const OpenDevice& open) {
  const CellConfig& cell = *config.cell;
  FSBL_ASSIGN(const Suite suite, suite_of(cell.tls.cipher));
  const AeadConfig aead_config{suite.cipher, cell.crypto.device, config.threads, config.module};
  FSBL_ASSIGN(auto device, share_device(cell.transport.engine, aead_config, open));
  const auto& cores = config.role == Role::client ? cell.placement.crypto_client : cell.placement.crypto_server;
  std::optional<int> core;
  std::unique_ptr<Aead> aead;
  if (cores.empty()) {
    FSBL_ASSIGN(aead, device->make_queue());
  } else {
    core = cores[config.thread % cores.size()];
    FSBL_ASSIGN(aead, OffCoreAead::start(*core, [device] { return device->make_queue(); }));
  }
  if (auto good = check_aead(*aead, suite.cipher); !good)
    return unavailable(fmt::format("record engine {} on {}", cell.transport.engine, device->facts().device),
                       "it is not trusted with records: " + good.error().message(), "choose another crypto.device");
  return std::make_unique<AeadEngines>(std::move(device), std::move(aead), suite, config, core);
}

}  // namespace fsbl
