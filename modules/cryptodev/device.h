// One DPDK cryptodev as an AeadDevice: each queue pair is an Aead of one load thread, each key a session of the device.
//
// The device owns all memory that the driver may touch (operations, buffers, sessions) and frees it after it has
// stopped: a queue that gave up on an answer leaves nothing behind that a late one could write to.
#pragma once
#include <rte_cryptodev.h>

#include <mutex>
#include <vector>

#include "modules/cryptodev/request.h"

namespace fsbl {

// Of DPDK, freed with the device.
struct MempoolFree {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using Mempool = std::unique_ptr<rte_mempool, MempoolFree>;

class CryptoDevice final : public AeadDevice {
 public:
  static Expected<std::unique_ptr<AeadDevice>> open(const AeadConfig& config);
  ~CryptoDevice() override;

  const AeadFacts& facts() const override { return facts_; }
  Expected<std::unique_ptr<Aead>> make_queue() override;

  // For the queues. Sessions: thread-safe, for one key and one direction; null and a reason in `why` when the driver
  // refuses or memory is out.
  void* make_session(std::span<const std::byte> key, KeyUse use, std::string& why);
  void free_session(void* session) noexcept;
  void keep_session(void* session) noexcept;   // an operation that uses it never came back: free it after the stop
  uint8_t id() const { return id_; }
  Cipher cipher() const { return cipher_; }
  bool has(uint64_t feature) const { return (features_ & feature) != 0; }
  bool bounces() const { return bounce_; }
  std::string what() const { return "open cryptodev " + text_; }

 private:
  explicit CryptoDevice(const AeadConfig& config) : cipher_(config.cipher), queues_(config.queues) {}
  Expected<> make_instance(const DeviceRequest& request, unsigned instance);
  Expected<> find_pci(const DeviceRequest& request);
  Expected<> configure(const DeviceRequest& request);
  Expected<> check_capability() const;
  rte_mempool* pool_with_room();

  std::string text_;
  Cipher cipher_;
  uint32_t queues_;
  uint8_t id_ = 0;
  bool opened_ = false;                  // id_ is a device of ours
  bool started_ = false;
  bool bounce_ = false;
  uint64_t features_ = 0;
  AeadFacts facts_;
  std::vector<std::string> instances_;   // software devices that we made, in order

  std::mutex mutex_;                     // over what follows
  uint32_t made_queues_ = 0;
  uint32_t session_slots_ = 1;           // pool elements of one session (scheduler: one a worker more)
  std::vector<Mempool> session_pools_;
  std::vector<Mempool> queue_pools_;
  std::vector<void*> kept_sessions_;
};

// Where the initial vector and our own pointer stand in an operation.
inline constexpr uint16_t kIvOffset = sizeof(rte_crypto_op) + sizeof(rte_crypto_sym_op);
inline constexpr uint16_t kOpPrivateBytes = 16 + sizeof(void*);

}  // namespace fsbl
