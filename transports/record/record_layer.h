// The TLS 1.3 record layer of one flow over a cipher back end (RFC 8446, 5): framing, sequence numbers, alerts,
// KeyUpdate, tickets. Everything between the ciphertext on the wire and the bytes of the application but the cipher.
#pragma once
#include <array>
#include <optional>

#include "harness/transport/record_engine.h"
#include "transports/record/aead.h"
#include "transports/record/traffic_keys.h"

namespace fsbl {

class RecordLayer;

// Jobs of one start(); `owner[i]` is whom job i belongs to.
class AeadBatch final : public RecordBatch {
 public:
  bool empty() const noexcept override { return count == 0; }
  std::array<RecordJob, Aead::kBurst> jobs;
  std::array<RecordLayer*, Aead::kBurst> owner{};
  size_t count = 0;
  std::span<RecordJob> planned() { return std::span(jobs).first(count); }
};

// What one load thread's record layers share.
struct RecordShared {
  Aead& aead;
  Suite suite;
  uint64_t rekey_records = 0;           // a KeyUpdate after so many sent records
  AeadBatch opening;                    // of the one flow that is being opened
  std::vector<std::byte> ticket_copy;   // ciphertext of a record that may hold a ticket; kMaxSealedBytes
};

// RFC 8446, 5.5: 2^24.5 full records are the limit of AES-GCM; ChaCha20-Poly1305 has none below 2^64.
uint64_t rekey_limit(Cipher cipher);

class RecordLayer final : public RecordEngine {
 public:
  // `most_plain`: of one sent record, where the peer asked for less than the protocol's maximum.
  static Expected<std::unique_ptr<RecordLayer>> create(RecordShared& shared, const TrafficSecrets& secrets, Role role,
                                                       TicketSink* tickets, size_t most_plain = kMaxPlainBytes);
  ~RecordLayer() override;

  bool seal(std::span<const std::byte> plain, WireOut& out, RecordBatch& batch, size_t& taken) noexcept override;
  Opened open(std::span<std::byte> wire, size_t& taken, Pieces& plain, WireOut& out) noexcept override;
  void close(WireOut& out) noexcept override;
  const char* error() const noexcept override { return error_; }
  const char* alert() const noexcept override { return alert_; }
  uint64_t records_out() const noexcept override { return records_out_; }
  uint64_t records_in() const noexcept override { return records_in_; }
  uint64_t key_updates_out() const noexcept override { return key_updates_out_; }
  uint64_t key_updates_in() const noexcept override { return key_updates_in_; }

  // A planned record is finished.
  void ended(bool sealed) noexcept {
    --under_way_;
    if (!sealed && !*error_) error_ = kNotSealed;
  }

 private:
  // One direction: its secret, and the key that is in use.
  struct Half {
    std::array<std::byte, 48> secret{};
    TrafficKey key;
    KeyHandle handle = 0;
    bool has_handle = false;
    uint64_t sequence = 0;
    ~Half() { explicit_bzero(secret.data(), secret.size()); }
  };

  static constexpr const char* kNotSealed = "the cipher back end failed to seal a record";

  RecordLayer(RecordShared& shared, Role role, TicketSink* tickets) : shared_(shared), role_(role), tickets_(tickets) {}
  bool install(Half& half, KeyUse use) noexcept;
  bool next_key(Half& half, KeyUse use) noexcept;
  bool seal_now(uint8_t type, std::span<const std::byte> plain, WireOut& out) noexcept;
  bool send_key_update(WireOut& out) noexcept;
  void plan_seal(RecordJob& job, uint8_t type, std::span<const std::byte> plain, std::byte* record) noexcept;

  size_t plan_opens(std::span<std::byte> wire, WireOut& out) noexcept;
  Opened take(const RecordJob& job, std::span<const std::byte> ciphertext, Pieces& plain, WireOut& out) noexcept;
  Opened take_handshake(std::span<const std::byte> text, std::span<const std::byte> ciphertext, WireOut& out) noexcept;
  Opened take_key_update(uint8_t request, bool last, WireOut& out) noexcept;
  Opened take_alert(std::span<const std::byte> text, WireOut& out) noexcept;
  using Head = std::array<std::byte, 16>;   // of a record's ciphertext
  void undo_open(const RecordJob& job, const TrafficKey& key, const Head& head) noexcept;
  Opened fail(uint8_t alert, const char* why, WireOut& out) noexcept;

  RecordShared& shared_;
  Role role_;
  TicketSink* tickets_;
  size_t most_plain_ = kMaxPlainBytes;
  Half out_, in_;
  uint32_t under_way_ = 0;   // planned and not finished
  uint64_t records_out_ = 0, records_in_ = 0, key_updates_out_ = 0, key_updates_in_ = 0;
  const char* error_ = "";
  const char* alert_ = nullptr;
  bool closed_ = false, rekeyed_ = false, update_owed_ = false;
  // A handshake message that goes on in the next record: its header so far, and what of its body is still to come.
  std::array<std::byte, 4> message_{};
  size_t message_bytes_ = 0, body_left_ = 0;
  uint32_t records_without_data_ = 0;
};

// The record engines of one load thread over one queue of a cipher back end.
class AeadEngines final : public RecordEngines {
 public:
  // `core`: the CPU that does the cryptography, where it isn't the load thread's own.
  AeadEngines(std::shared_ptr<AeadDevice> device, std::unique_ptr<Aead> aead, Suite suite, const EngineConfig& config,
              std::optional<int> core);

  Expected<std::unique_ptr<RecordEngine>> make(const EngineContext& context) override;
  std::unique_ptr<RecordBatch> make_batch() override { return std::make_unique<AeadBatch>(); }
  void start(RecordBatch& batch) noexcept override;
  void finish(RecordBatch& batch) noexcept override;
  // The back end works while the thread does something else.
  bool overlaps() const noexcept override { return overlaps_; }
  bool gathers() const noexcept override { return true; }
  Json facts() const override;

 private:
  std::shared_ptr<AeadDevice> device_;
  std::unique_ptr<Aead> aead_;
  std::vector<std::pair<std::string, uint64_t>> counted_before_;   // by what tried the back end
  RecordShared shared_;
  Role role_;
  std::optional<int> core_;
  bool overlaps_;
};

}  // namespace fsbl
