// One queue pair as an Aead: operations and buffers are made once and used again, so that a burst costs no pool.
//
// Records are lent to the driver as external buffers, without a copy where that is faster: a seal reads the plaintext
// and the content type as two segments and writes the record. Short records are copied into place first, and so are
// all of a driver that can't do that. Devices with DMA can't reach the caller's memory: their records go through
// buffers of DPDK's (bounce), both ways.
//
// A driver that has not answered for a second is given up: the queue never asks it again (software drivers work while
// they are asked, hardware writes to our buffers only), and fails all that it is given.
//
// counters() are of the device (rte_cryptodev_stats), so of all its queues together: they are the witness, to be read
// while no queue works, once for a device and not summed over queues. `queue_done` and `queue_failed` are this queue's
// own. Of one device: dequeued_count = sum of queue_done + sum of queue_failed that the driver processed (a wrong tag
// is processed). So a witness that saw no failure has dequeued_count = sum of queue_done.
#pragma once
#include <rte_crypto.h>
#include <rte_mbuf.h>

#include "modules/cryptodev/device.h"

namespace fsbl {

inline constexpr uint32_t kQueueSlots = 2 * Aead::kBurst;
inline constexpr uint32_t kMbufsPerSlot = 3;   // plaintext, content type, record

class CryptoQueue final : public Aead {
 public:
  CryptoQueue(CryptoDevice& device, uint16_t queue);
  ~CryptoQueue() override;
  // Makes the slots from pools of the device. False: they hold less than expected.
  bool take(rte_mempool* ops, rte_mempool* mbufs);

  Expected<KeyHandle> add_key(std::span<const std::byte> key, KeyUse use) override;
  void drop_key(KeyHandle key) noexcept override;
  void start(std::span<RecordJob> jobs) noexcept override;
  void finish(std::span<RecordJob> jobs) noexcept override;
  std::vector<std::pair<std::string, uint64_t>> counters() const override;
  std::string record_counter() const override;

 private:
  struct Key {
    void* session = nullptr;   // null: dropped
    KeyUse use = KeyUse::seal;
  };
  struct Slot {
    rte_crypto_op* op = nullptr;
    rte_crypto_sym_op* sym = nullptr;   // of op
    rte_mbuf *plain = nullptr, *type = nullptr, *record = nullptr;
    RecordJob* job = nullptr;
    bool seals = false;
    uint8_t type_byte = 0;
  };

  Slot* prepare(RecordJob& job) noexcept;
  void lend(Slot& slot, RecordJob& job) noexcept;
  void bounce_in(Slot& slot, RecordJob& job) noexcept;
  void bounce_out(Slot& slot, RecordJob& job) noexcept;
  void enqueue() noexcept;
  size_t dequeue() noexcept;
  void complete(rte_crypto_op* op) noexcept;

  CryptoDevice& device_;
  const uint8_t id_;
  const uint16_t queue_;
  const bool bounce_;
  const uint32_t min_lent_bytes_;          // seals of at least so much plaintext are not copied
  bool dead_ = false;
  uint64_t done_ = 0, failed_ = 0;

  std::vector<Key> keys_;
  std::vector<KeyHandle> free_keys_;
  std::array<Slot, kQueueSlots> slots_;
  std::array<Slot*, kQueueSlots> free_{};   // the first free_count_
  uint32_t free_count_ = 0;
  std::array<rte_crypto_op*, kQueueSlots> waiting_{};   // prepared, and the driver had no room: from waiting_begin_
  uint32_t waiting_begin_ = 0, waiting_end_ = 0;
  uint32_t in_driver_ = 0;
};

}  // namespace fsbl
