#include "harness/worker/load_thread.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fsbl {

static Expected<> place(int cpu, int numa_node) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (cpu < 0 || cpu >= CPU_SETSIZE) return bad_input(fmt::format("pin to CPU {}", cpu), "no such CPU");
  CPU_SET(static_cast<size_t>(cpu), &cpus);
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus))
    return bad_input(fmt::format("pin to CPU {}", cpu), error == EINVAL ? "no such CPU, or not allowed to this process" : errno_text(error),
                     "set placement.client and placement.server");
  if (numa_node >= 0) {
    const unsigned long mask = 1ul << numa_node;
    if (numa_node > 62 || syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64) != 0)
      return bad_input(fmt::format("bind memory to NUMA node {}", numa_node), errno_text(errno), "see `numactl -H`");
  }
  return {};
}

Expected<std::unique_ptr<LoadThread>> LoadThread::start(int cpu, int numa_node) {
  std::unique_ptr<LoadThread> self(new LoadThread);
  self->thread_ = std::thread([raw = self.get()] { raw->loop(); });
  self->post([raw = self.get(), cpu, numa_node] { raw->status = place(cpu, numa_node); });
  self->wait();
  FSBL_TRY(self->status);
  return self;
}

LoadThread::~LoadThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LoadThread::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void LoadThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !work_; });
}

void LoadThread::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return work_ || stop_; });
    if (stop_) return;
    const auto work = work_;
    lock.unlock();
    work();
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace fsbl
