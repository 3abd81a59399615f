// For tests: cipher back ends that do wrong. EVP does the work; a hook sees each job before and after.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transports/record/evp_aead.h"

namespace fsbl::records {

class NoDevice final : public AeadDevice {  // whose queues were made elsewhere
 public:
  const AeadFacts& facts() const override { return facts_; }
  Expected<std::unique_ptr<Aead>> make_queue() override { return fault("make a queue", "a test has it"); }

 private:
  AeadFacts facts_{"test", "test", "0", "cpu", {}};
};

inline std::unique_ptr<Aead> make_evp(Cipher cipher) {
  auto device = make_evp_device(AeadConfig{cipher, "auto", 1, ""});
  auto queue = (*device)->make_queue();  // holds nothing of its device
  return std::move(*queue);
}

class HookedAead final : public Aead {
 public:
  struct Hooks {
    // Before the cipher; false: the job has its state, the cipher isn't asked.
    std::function<bool(RecordJob&, KeyUse)> before;
    std::function<void(RecordJob&, KeyUse)> after;
    int keys = 1 << 30;  // so many more are taken
  };
  HookedAead(Cipher cipher, std::shared_ptr<Hooks> hooks)
      : hooks_(std::move(hooks)), inner_(make_evp(cipher)) {}

  Expected<KeyHandle> add_key(std::span<const std::byte> key, KeyUse use) override {
    if (hooks_->keys-- <= 0) return fault("add a key", "full");
    auto handle = inner_->add_key(key, use);
    if (handle) {
      if (uses_.size() <= *handle) uses_.resize(*handle + 1);
      uses_[*handle] = use;
    }
    return handle;
  }
  void drop_key(KeyHandle key) noexcept override { inner_->drop_key(key); }
  void start(std::span<RecordJob> jobs) noexcept override {
    for (RecordJob& job : jobs) {
      if (hooks_->before && !hooks_->before(job, uses_[job.key])) continue;
      inner_->start({&job, 1});
      inner_->finish({&job, 1});
      if (hooks_->after) hooks_->after(job, uses_[job.key]);
    }
  }
  void finish(std::span<RecordJob>) noexcept override {}

 private:
  std::shared_ptr<Hooks> hooks_;
  std::unique_ptr<Aead> inner_;
  std::vector<KeyUse> uses_;
};

}  // namespace fsbl::records
