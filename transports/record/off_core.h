// A cipher back end on a core of its own: the load thread hands over bursts and goes on. Worth it where cores are to
// spare; the records are in order, their cost is on another CPU.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "transports/record/aead.h"

namespace fsbl {

// Used by one load thread; the inner queue is made and used on the thread that this starts, pinned to `cpu`. That
// thread spins while there is work and sleeps in a futex when there has been none for a while.
class OffCoreAead final : public Aead {
 public:
  static Expected<std::unique_ptr<Aead>> start(int cpu, std::function<Expected<std::unique_ptr<Aead>>()> make_queue);
  ~OffCoreAead() override;

  Expected<KeyHandle> add_key(std::span<const std::byte> key, KeyUse use) override;
  void drop_key(KeyHandle key) noexcept override;
  void start(std::span<RecordJob> jobs) noexcept override;
  void finish(std::span<RecordJob> jobs) noexcept override;
  std::vector<std::pair<std::string, uint64_t>> counters() const override;
  std::string record_counter() const override { return inner_->record_counter(); }

 private:
  OffCoreAead() = default;
  void loop() noexcept;
  void wait_for(uint64_t burst) const noexcept;   // until so many bursts are done

  static constexpr size_t kRing = 8;   // bursts handed over and not done, at most
  static constexpr uint64_t kStop = UINT64_MAX;
  std::array<std::span<RecordJob>, kRing> ring_;
  alignas(64) std::atomic<uint64_t> started_ = 0;   // bursts handed over; kStop: end
  alignas(64) std::atomic<uint64_t> done_ = 0;      // bursts done
  alignas(64) uint64_t handed_ = 0;                 // the load thread's own copy of started_
  std::unique_ptr<Aead> inner_;
  std::thread thread_;
};

}  // namespace fsbl
