#include "modules/cryptodev/queue.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "harness/core/clock.h"

namespace fsbl {
namespace {

constexpr size_t kMaxKeys = 65536;
constexpr Nanos kAnswerWithin = 1'000'000'000;

// From how much plaintext on a second segment costs less than copying. Measured with fsbl-bench-engines: about 1 KiB on
// crypto_aesni_gcm, crypto_chacha20_poly1305 and crypto_openssl; crypto_aesni_mb takes a job for each segment.
uint32_t min_lent_bytes(const CryptoDevice& device) {
  if (!device.has(RTE_CRYPTODEV_FF_OOP_SGL_IN_LB_OUT)) return std::numeric_limits<uint32_t>::max();
  return device.facts().driver == "crypto_aesni_mb" ? 8192 : 1024;
}

uint8_t* raw(const std::byte* p) { return reinterpret_cast<uint8_t*>(const_cast<std::byte*>(p)); }

// Makes `mbuf` stand for memory of the caller's. Software drivers take virtual addresses for IOVA.
void point(rte_mbuf* mbuf, uint8_t* data, uint32_t bytes, uint32_t room) noexcept {
  mbuf->buf_addr = data;
  mbuf->buf_iova = reinterpret_cast<uintptr_t>(data);
  mbuf->buf_len = static_cast<uint16_t>(room);
  mbuf->data_off = 0;
  mbuf->data_len = static_cast<uint16_t>(bytes);
  mbuf->pkt_len = bytes;
}

// The slot of an operation, kept behind its initial vector.
constexpr uint16_t kSlotOffset = kIvOffset + 16;
static_assert(kSlotOffset % alignof(void*) == 0);

std::byte* body(RecordJob& job) noexcept { return job.record + kRecordHeaderBytes; }

}  // namespace

CryptoQueue::CryptoQueue(CryptoDevice& device, uint16_t queue)
    : device_(device),
      id_(device.id()),
      queue_(queue),
      bounce_(device.bounces()),
      min_lent_bytes_(min_lent_bytes(device)) {}

CryptoQueue::~CryptoQueue() {
  const bool idle = in_driver_ == 0;
  for (const Key& key : keys_) {
    if (!key.session) continue;
    if (idle) device_.free_session(key.session);
    else device_.keep_session(key.session);
  }
}

bool CryptoQueue::take(rte_mempool* ops, rte_mempool* mbufs) {
  for (Slot& slot : slots_) {
    slot.op = rte_crypto_op_alloc(ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC);
    slot.plain = rte_pktmbuf_alloc(mbufs);
    slot.type = rte_pktmbuf_alloc(mbufs);
    slot.record = rte_pktmbuf_alloc(mbufs);
    if (!slot.op || !slot.plain || !slot.type || !slot.record) return false;
    slot.sym = reinterpret_cast<rte_crypto_sym_op*>(slot.op + 1);   // as op->sym, which GCC takes for an empty array
    slot.op->sess_type = RTE_CRYPTO_OP_WITH_SESSION;
    *rte_crypto_op_ctod_offset(slot.op, Slot**, kSlotOffset) = &slot;
    if (!bounce_) {
      slot.plain->next = slot.type;
      slot.plain->nb_segs = 2;
      point(slot.type, &slot.type_byte, 1, 1);
    }
    free_[free_count_++] = &slot;
  }
  return true;
}

Expected<KeyHandle> CryptoQueue::add_key(std::span<const std::byte> key, KeyUse use) {
  const std::string what = "add a key to " + device_.facts().device;
  if (key.size() != key_bytes(device_.cipher()))
    return fault(what, fmt::format("{} bytes are no key of {}", key.size(), cipher_name(device_.cipher())));
  if (free_keys_.empty() && keys_.size() == kMaxKeys)
    return unavailable(what, fmt::format("{} keys are in use", kMaxKeys), "use fewer flows");
  std::string why;
  void* session = device_.make_session(key, use, why);
  if (!session) return unavailable(what, why, "use fewer flows, or another device");
  if (free_keys_.empty()) {
    keys_.emplace_back();
    free_keys_.reserve(keys_.size());   // drop_key() must not allocate
    free_keys_.push_back(static_cast<KeyHandle>(keys_.size() - 1));
  }
  const KeyHandle handle = free_keys_.back();
  free_keys_.pop_back();
  keys_[handle] = {session, use};
  return handle;
}

void CryptoQueue::drop_key(KeyHandle key) noexcept {
  if (key >= keys_.size() || !keys_[key].session) return;
  // No job of the key is under way, but one that a dead driver never gave back may be.
  if (dead_) device_.keep_session(keys_[key].session);
  else device_.free_session(keys_[key].session);
  keys_[key].session = nullptr;
  free_keys_.push_back(key);
}

// Without a copy for the driver to work on the caller's memory.
void CryptoQueue::lend(Slot& slot, RecordJob& job) noexcept {
  auto& aead = slot.sym->aead;
  uint8_t* data = raw(body(job));
  const uint32_t text = slot.seals ? job.bytes + 1 : job.bytes - static_cast<uint32_t>(kTagBytes);
  point(slot.record, data, text, text + kTagBytes);
  slot.sym->m_src = slot.record;
  slot.sym->m_dst = nullptr;
  if (slot.seals) {
    if (job.bytes >= min_lent_bytes_) {
      slot.type_byte = job.type;
      point(slot.plain, raw(job.plain), job.bytes, job.bytes);
      slot.plain->pkt_len = text;
      slot.sym->m_src = slot.plain;
      slot.sym->m_dst = slot.record;
    } else {
      if (job.bytes > 0) std::memcpy(data, job.plain, job.bytes);
      data[job.bytes] = job.type;
    }
  }
  aead.data.offset = 0;
  aead.data.length = text;
  aead.aad.data = raw(job.record);
  aead.aad.phys_addr = reinterpret_cast<uintptr_t>(aead.aad.data);
  aead.digest.data = data + text;
  aead.digest.phys_addr = reinterpret_cast<uintptr_t>(aead.digest.data);
}

void CryptoQueue::bounce_in(Slot& slot, RecordJob& job) noexcept {
  auto& aead = slot.sym->aead;
  rte_mbuf* mbuf = slot.record;
  auto* record = rte_pktmbuf_mtod(mbuf, uint8_t*);
  uint8_t* data = record + kRecordHeaderBytes;
  const uint32_t text = slot.seals ? job.bytes + 1 : job.bytes - static_cast<uint32_t>(kTagBytes);
  std::memcpy(record, job.record, kRecordHeaderBytes);
  if (slot.seals) {
    if (job.bytes > 0) std::memcpy(data, job.plain, job.bytes);
    data[job.bytes] = job.type;
  } else {
    std::memcpy(data, body(job), job.bytes);
  }
  mbuf->data_len = static_cast<uint16_t>(kRecordHeaderBytes + text + kTagBytes);
  mbuf->pkt_len = mbuf->data_len;
  slot.sym->m_src = mbuf;
  slot.sym->m_dst = nullptr;
  aead.data.offset = kRecordHeaderBytes;
  aead.data.length = text;
  aead.aad.data = record;
  aead.aad.phys_addr = rte_pktmbuf_iova(mbuf);
  aead.digest.data = data + text;
  aead.digest.phys_addr = rte_pktmbuf_iova_offset(mbuf, kRecordHeaderBytes + text);
}

void CryptoQueue::bounce_out(Slot& slot, RecordJob& job) noexcept {
  const uint8_t* data = rte_pktmbuf_mtod(slot.record, uint8_t*) + kRecordHeaderBytes;
  std::memcpy(body(job), data, slot.seals ? job.bytes + 1 + kTagBytes : job.bytes - kTagBytes);
}

// Null: the job is no good.
CryptoQueue::Slot* CryptoQueue::prepare(RecordJob& job) noexcept {
  if (dead_ || free_count_ == 0 || job.key >= keys_.size() || !keys_[job.key].session) return nullptr;
  const Key& key = keys_[job.key];
  const bool seals = key.use == KeyUse::seal;
  if (seals ? job.bytes > kMaxPlainBytes : job.bytes <= kTagBytes || job.bytes > kMaxSealedBytes) return nullptr;
  Slot* slot = free_[--free_count_];
  slot->job = &job;
  slot->seals = seals;
  slot->op->status = RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
  slot->sym->session = key.session;
  std::memcpy(rte_crypto_op_ctod_offset(slot->op, uint8_t*, kIvOffset), job.nonce.data(), kNonceBytes);
  if (bounce_) bounce_in(*slot, job);
  else lend(*slot, job);
  return slot;
}

void CryptoQueue::start(std::span<RecordJob> jobs) noexcept {
  if (waiting_end_ + jobs.size() > waiting_.size()) {
    std::memmove(waiting_.data(), &waiting_[waiting_begin_], (waiting_end_ - waiting_begin_) * sizeof waiting_[0]);
    waiting_end_ -= waiting_begin_;
    waiting_begin_ = 0;
  }
  for (RecordJob& job : jobs) {
    Slot* slot = prepare(job);
    if (!slot) {
      job.state = JobState::failed;
      ++failed_;
      continue;
    }
    job.state = JobState::started;
    waiting_[waiting_end_++] = slot->op;
  }
  enqueue();
}

void CryptoQueue::enqueue() noexcept {
  while (waiting_begin_ != waiting_end_) {
    const auto count = static_cast<uint16_t>(waiting_end_ - waiting_begin_);
    const uint16_t taken = rte_cryptodev_enqueue_burst(id_, queue_, &waiting_[waiting_begin_], count);
    waiting_begin_ += taken;
    in_driver_ += taken;
    if (taken == count) break;
    // No room now, or the driver refuses the next one: then it says so in its status.
    rte_crypto_op* next = waiting_[waiting_begin_];
    if (next->status == RTE_CRYPTO_OP_STATUS_NOT_PROCESSED) return;
    ++waiting_begin_;
    if (next->status == RTE_CRYPTO_OP_STATUS_SUCCESS) next->status = RTE_CRYPTO_OP_STATUS_ERROR;
    complete(next);
  }
  waiting_begin_ = waiting_end_ = 0;
}

void CryptoQueue::complete(rte_crypto_op* op) noexcept {
  Slot* slot = *rte_crypto_op_ctod_offset(op, Slot**, kSlotOffset);
  RecordJob& job = *slot->job;
  const bool ok = op->status == RTE_CRYPTO_OP_STATUS_SUCCESS;
  if (ok && bounce_) bounce_out(*slot, job);
  (ok ? done_ : failed_) += 1;
  job.state = ok ? JobState::done : JobState::failed;
  slot->job = nullptr;
  free_[free_count_++] = slot;
}

size_t CryptoQueue::dequeue() noexcept {
  if (in_driver_ == 0) return 0;
  std::array<rte_crypto_op*, kBurst> ops;
  const uint16_t count = rte_cryptodev_dequeue_burst(id_, queue_, ops.data(), ops.size());
  in_driver_ -= count;
  for (uint16_t i = 0; i < count; ++i) complete(ops[i]);
  return count;
}

void CryptoQueue::finish(std::span<RecordJob> jobs) noexcept {
  size_t next = 0;
  Nanos give_up = 0;   // 0: no need to look at the clock, the driver answers
  for (;;) {
    while (next < jobs.size() && jobs[next].state != JobState::started) ++next;
    if (next == jobs.size()) return;
    if (dead_) break;
    const size_t came = dequeue();
    if (waiting_begin_ != waiting_end_) enqueue();
    if (came > 0) {
      give_up = 0;
      continue;
    }
    const Nanos now = mono_now_ns();
    if (give_up == 0) give_up = now + kAnswerWithin;
    else if (now >= give_up) dead_ = true;
  }
  for (; next < jobs.size(); ++next) {
    if (jobs[next].state != JobState::started) continue;
    jobs[next].state = JobState::failed;
    ++failed_;
  }
}

std::vector<std::pair<std::string, uint64_t>> CryptoQueue::counters() const {
  std::vector<std::pair<std::string, uint64_t>> all;
  rte_cryptodev_stats stats{};
  if (rte_cryptodev_stats_get(id_, &stats) == 0)
    all = {{"enqueued_count", stats.enqueued_count},
           {"dequeued_count", stats.dequeued_count},
           {"enqueue_err_count", stats.enqueue_err_count},
           {"dequeue_err_count", stats.dequeue_err_count}};
  all.insert(all.end(), {{"queue_done", done_}, {"queue_failed", failed_}});
  return all;
}

std::string CryptoQueue::record_counter() const {
  rte_cryptodev_stats stats{};
  return rte_cryptodev_stats_get(id_, &stats) == 0 ? "dequeued_count" : "";
}

}  // namespace fsbl
