#include "modules/cryptodev/device.h"

#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_version.h>

#include <algorithm>
#include <atomic>

#include "modules/cryptodev/eal.h"
#include "modules/cryptodev/queue.h"

namespace fsbl {
namespace {

// A power of two: the rings of several drivers need one, and hold one less than that.
constexpr uint32_t kQueueDepth = 128;
static_assert(kQueueDepth > 2 * Aead::kBurst);
constexpr uint32_t kSessionsPerPool = 512;

unsigned next_instance() {
  static std::atomic<unsigned> next{0};
  return next++;
}

// "ENOTSUP: ... (what the driver logged)"
std::string reason(int error_number) {
  const std::string log = Eal::instance().take_log();
  return errno_text(error_number < 0 ? -error_number : error_number) + (log.empty() ? "" : " (" + log + ")");
}

}  // namespace

Expected<std::unique_ptr<AeadDevice>> CryptoDevice::open(const AeadConfig& config) {
  const unsigned instance = next_instance();
  FSBL_ASSIGN(const DeviceRequest request, parse_request(config, instance));
  std::unique_ptr<CryptoDevice> device(new CryptoDevice(config));   // before the lock, which its destructor takes
  device->text_ = request.text;
  Eal& eal = Eal::instance();
  const std::lock_guard lock(eal.mutex());
  FSBL_TRY(eal.start(request));
  eal.take_log();
  if (request.is_pci()) FSBL_TRY(device->find_pci(request));
  else FSBL_TRY(device->make_instance(request, instance));
  FSBL_TRY(device->configure(request));
  return std::unique_ptr<AeadDevice>(std::move(device));
}

Expected<> CryptoDevice::make_instance(const DeviceRequest& request, unsigned instance) {
  const auto make = [&](const std::string& name, const std::string& args) -> Expected<> {
    if (const int error = rte_vdev_init(name.c_str(), args.c_str()); error != 0)
      return unavailable(what(), fmt::format("DPDK makes no device {}: {}", name, reason(error)),
                         "use crypto.device: auto or crypto_openssl, or install DPDK's package with that driver");
    instances_.push_back(name);
    return {};
  };
  const std::string queues = queues_ > 8 ? fmt::format("max_nb_queue_pairs={}", queues_) : "";
  for (const std::string& worker : request.workers) FSBL_TRY(make(worker, queues));
  const std::string name = fmt::format("{}_{}", request.driver, instance);
  FSBL_TRY(make(name, request.args));
  const int id = rte_cryptodev_get_dev_id(name.c_str());
  if (id < 0) return unavailable(what(), name + " is not a cryptodev", "use crypto.device: auto");
  id_ = static_cast<uint8_t>(id);
  opened_ = true;
  facts_.device = name;
  session_slots_ = 1 + static_cast<uint32_t>(request.workers.size());
  return {};
}

Expected<> CryptoDevice::find_pci(const DeviceRequest& request) {
  for (int id = 0; id < RTE_CRYPTO_MAX_DEVS; ++id) {
    if (!rte_cryptodev_is_valid_dev(static_cast<uint8_t>(id))) continue;
    rte_cryptodev_info info{};
    rte_cryptodev_info_get(static_cast<uint8_t>(id), &info);
    const std::string address = info.device ? rte_dev_name(info.device) : "";
    if (std::ranges::find(request.pci, address) == request.pci.end()) continue;
    if (!(info.feature_flags & RTE_CRYPTODEV_FF_SYMMETRIC_CRYPTO)) continue;
    if (!request.driver.empty() && request.driver != info.driver_name) continue;
    id_ = static_cast<uint8_t>(id);
    opened_ = true;
    facts_.device = rte_cryptodev_name_get(id_);
    return {};
  }
  const std::string log = Eal::instance().take_log();
  return unavailable(what(), fmt::format("no crypto driver of DPDK took PCI device {}{}", request.pci.front(),
                                         log.empty() ? "" : " (" + log + ")"),
                     "bind it to vfio-pci (dpdk-devbind.py) and let the worker's user open its /dev/vfio group");
}

Expected<> CryptoDevice::check_capability() const {
  rte_cryptodev_sym_capability_idx index{};
  index.type = RTE_CRYPTO_SYM_XFORM_AEAD;
  const bool chacha = cipher_ == Cipher::chacha20_poly1305;
  index.algo.aead = chacha ? RTE_CRYPTO_AEAD_CHACHA20_POLY1305 : RTE_CRYPTO_AEAD_AES_GCM;
  const std::string fix = "use crypto.device: auto, which is " + auto_driver(cipher_) + " for this cipher";
  const auto* capability = rte_cryptodev_sym_capability_get(id_, &index);
  if (!capability) return unavailable(what(), facts_.driver + " lacks " + cipher_name(cipher_), fix);
  if (rte_cryptodev_sym_capability_check_aead(capability, static_cast<uint16_t>(key_bytes(cipher_)), kTagBytes,
                                              kRecordHeaderBytes, kNonceBytes) != 0)
    return unavailable(what(), fmt::format("{} has {}, but not with a key of {}, a tag of {}, additional data of {} "
                                           "and an initial vector of {} bytes", facts_.driver, cipher_name(cipher_),
                                           key_bytes(cipher_), kTagBytes, kRecordHeaderBytes, kNonceBytes), fix);
  return {};
}

Expected<> CryptoDevice::configure(const DeviceRequest& request) {
  rte_cryptodev_info info{};
  rte_cryptodev_info_get(id_, &info);
  features_ = info.feature_flags;
  facts_.driver = info.driver_name;
  facts_.version = rte_version();
  facts_.device_class = has(RTE_CRYPTODEV_FF_HW_ACCELERATED) ? "accelerator" : "cpu";
  for (int bit = 0; bit < 64; ++bit)
    if (features_ >> bit & 1)
      if (const char* name = rte_cryptodev_get_feature_name(1ULL << bit)) facts_.features.emplace_back(name);
  bounce_ = request.bounce || has(RTE_CRYPTODEV_FF_HW_ACCELERATED);

  FSBL_TRY(check_capability());
  if (queues_ > info.max_nb_queue_pairs)
    return unavailable(what(), fmt::format("{} load threads need a queue each, and {} has {}", queues_, facts_.device,
                                           info.max_nb_queue_pairs),
                       "use fewer load threads, or raise max_nb_queue_pairs of a software driver");

  constexpr const char* kFix = "check its arguments, use fewer load threads, or use crypto.device: auto";
  rte_cryptodev_config config{};
  config.nb_queue_pairs = static_cast<uint16_t>(queues_);
  config.ff_disable = RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO | RTE_CRYPTODEV_FF_SECURITY;
  const int socket = rte_cryptodev_socket_id(id_);
  config.socket_id = socket;
  if (const int error = rte_cryptodev_configure(id_, &config); error != 0)
    return unavailable(what(), fmt::format("{} refuses {} queues: {}", facts_.device, queues_, reason(error)), kFix);
  rte_cryptodev_qp_conf queue{};
  queue.nb_descriptors = kQueueDepth;
  for (uint32_t i = 0; i < queues_; ++i)
    if (const int error = rte_cryptodev_queue_pair_setup(id_, static_cast<uint16_t>(i), &queue, socket); error != 0)
      return unavailable(what(), fmt::format("{} refuses queue {}: {}", facts_.device, i, reason(error)), kFix);
  if (const int error = rte_cryptodev_start(id_); error != 0)
    return unavailable(what(), fmt::format("{} does not start: {}", facts_.device, reason(error)), kFix);
  started_ = true;
  return {};
}

CryptoDevice::~CryptoDevice() {
  const std::lock_guard lock(Eal::instance().mutex());
  if (started_) rte_cryptodev_stop(id_);
  for (void* session : kept_sessions_) rte_cryptodev_sym_session_free(id_, session);
  if (opened_) rte_cryptodev_close(id_);
  // The scheduler before its workers.
  for (auto name = instances_.rbegin(); name != instances_.rend(); ++name) rte_vdev_uninit(name->c_str());
}

rte_mempool* CryptoDevice::pool_with_room() {
  for (const Mempool& pool : session_pools_)
    if (rte_mempool_avail_count(pool.get()) >= session_slots_) return pool.get();
  const std::string name = fmt::format("fsbl_s{}_{}", id_, session_pools_.size());
  Mempool pool(rte_cryptodev_sym_session_pool_create(name.c_str(), kSessionsPerPool * session_slots_,
                                                     rte_cryptodev_sym_get_private_session_size(id_), 0, 0,
                                                     SOCKET_ID_ANY));
  if (!pool) return nullptr;
  session_pools_.push_back(std::move(pool));
  return session_pools_.back().get();
}

void* CryptoDevice::make_session(std::span<const std::byte> key, KeyUse use, std::string& why) {
  const std::lock_guard lock(mutex_);
  rte_mempool* pool = pool_with_room();
  if (!pool) {
    why = "no memory for more sessions: " + reason(rte_errno);
    return nullptr;
  }
  rte_crypto_sym_xform xform{};
  xform.type = RTE_CRYPTO_SYM_XFORM_AEAD;
  xform.aead.op = use == KeyUse::seal ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT;
  xform.aead.algo =
      cipher_ == Cipher::chacha20_poly1305 ? RTE_CRYPTO_AEAD_CHACHA20_POLY1305 : RTE_CRYPTO_AEAD_AES_GCM;
  xform.aead.key.data = reinterpret_cast<const uint8_t*>(key.data());   // lent: the driver expands or copies it
  xform.aead.key.length = static_cast<uint16_t>(key.size());
  xform.aead.iv = {kIvOffset, kNonceBytes};
  xform.aead.digest_length = kTagBytes;
  xform.aead.aad_length = kRecordHeaderBytes;
  void* session = rte_cryptodev_sym_session_create(id_, &xform, pool);
  if (!session) why = reason(rte_errno);
  return session;
}

void CryptoDevice::free_session(void* session) noexcept {
  const std::lock_guard lock(mutex_);
  rte_cryptodev_sym_session_free(id_, session);
}

void CryptoDevice::keep_session(void* session) noexcept {
  const std::lock_guard lock(mutex_);
  kept_sessions_.push_back(session);
}

Expected<std::unique_ptr<Aead>> CryptoDevice::make_queue() {
  const std::lock_guard lock(mutex_);
  if (made_queues_ == queues_)
    return fault(what(), fmt::format("all {} queues are taken", queues_), "ask for one a load thread");
  const std::string suffix = fmt::format("{}_{}", id_, made_queues_);
  const auto no_memory = [&] {
    return unavailable(what(), fmt::format("no memory for queue {}: {}", made_queues_, reason(rte_errno)),
                       "use fewer load threads");
  };
  Mempool ops(rte_crypto_op_pool_create(("fsbl_o" + suffix).c_str(), RTE_CRYPTO_OP_TYPE_SYMMETRIC, kQueueSlots, 0,
                                        kOpPrivateBytes, SOCKET_ID_ANY));
  if (!ops) return no_memory();
  const uint32_t room = bounces() ? RTE_PKTMBUF_HEADROOM + kRecordHeaderBytes + kMaxSealedBytes + kTagBytes + 64 : 0;
  Mempool mbufs(rte_pktmbuf_pool_create(("fsbl_m" + suffix).c_str(), kQueueSlots * kMbufsPerSlot, 0, 0,
                                        static_cast<uint16_t>(room), SOCKET_ID_ANY));
  if (!mbufs) return no_memory();
  auto queue = std::make_unique<CryptoQueue>(*this, static_cast<uint16_t>(made_queues_));
  if (!queue->take(ops.get(), mbufs.get())) return no_memory();
  queue_pools_.push_back(std::move(ops));
  queue_pools_.push_back(std::move(mbufs));
  ++made_queues_;
  return std::unique_ptr<Aead>(std::move(queue));
}

}  // namespace fsbl
