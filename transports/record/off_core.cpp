#include "transports/record/off_core.h"

#include <fmt/format.h>
#include <pthread.h>

#include <future>
#include <system_error>

namespace fsbl {
namespace {

// About 20 µs: longer than a gap between bursts of a stream, shorter than anybody would call a busy core.
constexpr int kSpins = 2000;

void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

Expected<> pin(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &cpus);
  if (pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus) != 0)
    return bad_input(fmt::format("pin record cryptography to CPU {}", cpu), "no such CPU, or not allowed to this process",
                     "set placement.crypto_client and placement.crypto_server");
  return {};
}

}  // namespace

Expected<std::unique_ptr<Aead>> OffCoreAead::start(int cpu, std::function<Expected<std::unique_ptr<Aead>>()> make_queue) {
  std::unique_ptr<OffCoreAead> self(new OffCoreAead);
  std::promise<Expected<>> made;
  auto outcome = made.get_future();
  try {
    self->thread_ = std::thread([raw = self.get(), cpu, &make_queue, promise = std::move(made)]() mutable {
      Expected<> status = pin(cpu);
      if (status) {
        auto queue = make_queue();
        if (queue) raw->inner_ = std::move(*queue);
        else status = tl::unexpected(queue.error());
      }
      const bool good = status.has_value();
      promise.set_value(std::move(status));
      if (good) raw->loop();
    });
  } catch (const std::system_error& error) {
    return fault("start the thread for record cryptography", error.what());
  }
  FSBL_TRY(outcome.get());
  return self;
}

OffCoreAead::~OffCoreAead() {
  if (!thread_.joinable()) return;
  wait_for(handed_);
  started_.store(kStop, std::memory_order_release);
  started_.notify_one();
  thread_.join();
}

void OffCoreAead::loop() noexcept {
  for (uint64_t next = 0;; ++next) {
    uint64_t started = started_.load(std::memory_order_acquire);
    for (int spins = 0; started == next; started = started_.load(std::memory_order_acquire)) {
      if (++spins < kSpins) pause_cpu();
      else started_.wait(started, std::memory_order_acquire);
    }
    if (started == kStop) return;
    const std::span<RecordJob> jobs = ring_[next % kRing];
    inner_->start(jobs);
    inner_->finish(jobs);
    done_.store(next + 1, std::memory_order_release);
  }
}

void OffCoreAead::wait_for(uint64_t burst) const noexcept {
  for (int spins = 0; done_.load(std::memory_order_acquire) < burst;) {
    if (++spins < kSpins) pause_cpu();
    else std::this_thread::yield();   // both may have been put on one CPU
  }
}

void OffCoreAead::start(std::span<RecordJob> jobs) noexcept {
  if (handed_ >= kRing) wait_for(handed_ - kRing + 1);
  ring_[handed_ % kRing] = jobs;
  started_.store(++handed_, std::memory_order_release);
  started_.notify_one();
}

void OffCoreAead::finish(std::span<RecordJob> jobs) noexcept {
  // The newest burst that holds these jobs; older ones of the same place are long done.
  for (uint64_t burst = handed_; burst > 0 && burst + kRing > handed_; --burst) {
    const auto& held = ring_[(burst - 1) % kRing];
    if (held.data() <= jobs.data() && jobs.data() < held.data() + held.size()) return wait_for(burst);
  }
}

// Keys are the inner queue's, and its thread is idle once everything handed over is done.
Expected<KeyHandle> OffCoreAead::add_key(std::span<const std::byte> key, KeyUse use) {
  wait_for(handed_);
  return inner_->add_key(key, use);
}
void OffCoreAead::drop_key(KeyHandle key) noexcept {
  wait_for(handed_);
  inner_->drop_key(key);
}
std::vector<std::pair<std::string, uint64_t>> OffCoreAead::counters() const {
  wait_for(handed_);
  return inner_->counters();
}

}  // namespace fsbl
