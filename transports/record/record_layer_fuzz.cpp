// Fuzz target: whatever a peer sends, sealed with the right keys or not, in whatever pieces it arrives, the
// record layer takes no more than is there, delivers only what was sealed as data, in order, says why it
// failed and stays so; and all that it sends opens at an independent peer. The input is a script of what the
// peer and we do.
#include <cstdlib>

#include "harness/scenario/model.h"
#include "transports/record/hooked_aead_for_test.h"
#include "transports/record/record_layer.h"
#include "transports/record/record_oracle_for_test.h"

namespace fsbl::records {
namespace {

void must(bool fact) {
  if (!fact) std::abort();
}

class Script {
 public:
  Script(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool over() const { return size_ == 0; }
  size_t byte() { return size_ > 0 ? (--size_, *data_++) : 0; }
  size_t two() {
    const size_t high = byte();
    return high << 8 | byte();
  }
  Blob some() {  // up to 255 of the input's own bytes
    Blob out(std::min(byte(), size_));
    for (std::byte& b : out) b = static_cast<std::byte>(byte());
    return out;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

struct Sink final : TicketSink {
  size_t bytes = 0;
  void ticket(std::span<const std::byte> record) noexcept override {
    for (std::byte b : record) bytes += b != std::byte{};  // read them all
  }
};

// One record layer, its peer, and what is between them.
class Flow {
 public:
  Flow(Cipher cipher, Role role, size_t options)
      : suite_(suite_for(cipher)),
        ours_(suite_, Blob(hash_bytes(suite_.hash), std::byte{1})),
        peer_(suite_, Blob(hash_bytes(suite_.hash), std::byte{2})),
        role_(role) {
    // A back end may leave alone what it can't authenticate.
    auto hooks = std::make_shared<HookedAead::Hooks>();
    if (options & 1) {
      hooks->before = [this](RecordJob& job, KeyUse use) {
        if (use == KeyUse::open) saved_.assign(job.record, job.record + kRecordHeaderBytes + job.bytes);
        return true;
      };
      hooks->after = [this](RecordJob& job, KeyUse use) {
        if (use == KeyUse::open && job.state == JobState::failed)
          std::copy(saved_.begin(), saved_.end(), job.record);
      };
    }
    CellConfig cell;
    cell.tls.rekey_records = options & 2 ? 3 : 0;
    EngineConfig config;
    config.cell = &cell;
    config.role = role;
    engines_ = std::make_unique<AeadEngines>(std::make_shared<NoDevice>(),
                                             std::make_unique<HookedAead>(cipher, hooks), suite_, config,
                                             std::nullopt);
    TrafficSecrets secrets;
    secrets.bytes = hash_bytes(suite_.hash);
    (role == Role::client ? secrets.client : secrets.server).fill(std::byte{1});
    (role == Role::client ? secrets.server : secrets.client).fill(std::byte{2});
    EngineContext context;
    context.secrets = &secrets;
    context.tickets = options & 4 ? &sink_ : nullptr;
    auto made = engines_->make(context);
    must(made.has_value());
    engine_ = std::move(*made);
    batch_ = engines_->make_batch();
    small_room_ = options & 8;
    honest_ = !small_room_;
  }

  void turn(Script& script) {
    const size_t what = script.byte() % 10;
    honest_ = honest_ && what != 2 && what != 3 && what != 4;
    switch (what) {
      case 0:
        return peer_seals(Blob(1 + script.byte(), std::byte{0x61}), kDataType,
                          script.byte() % 4 ? 0 : script.two() % 16400);
      case 1:
        return peer_seals(Blob(script.two() % 16700, std::byte{0x62}), kDataType,
                          script.byte() % 4 ? 0 : script.byte());
      case 2: {
        const auto type = static_cast<uint8_t>(20 + script.byte() % 6);
        return peer_seals(script.some(), type, script.byte() % 4 ? 0 : script.byte());
      }
      case 3:
        return append(wire_, script.some());
      case 4:
        if (!wire_.empty())
          wire_[script.two() % wire_.size()] ^= static_cast<std::byte>(1 << script.byte() % 8);
        return;
      case 5:
        peer_seals(key_update(static_cast<int>(script.byte() % 2)), kHandshakeType,
                   script.byte() % 2 ? 0 : script.two() % 16380);
        return peer_.update();
      case 6: {  // the peer's handshake message in two records
        const Blob both = message(4, script.some());
        const size_t at = script.byte() % (both.size() + 1);
        honest_ = honest_ && at % both.size() != 0 && role_ == Role::client;
        peer_seals(part(both, 0, at), kHandshakeType, 0);
        return peer_seals(part(both, at), kHandshakeType, 0);
      }
      case 7:
        return open(std::min(wire_.size(), script.two()));
      case 8:
        return seal(script.two(), script.byte() % 2);
      case 9:
        if (script.byte() % 8 == 0) return close();
        return open(wire_.size());
    }
  }

  void end() {
    open(wire_.size());
    finish();
    must(!honest_ || (!*engine_->error() && wire_.empty() && delivered_ == data_.size()));
    close();
    for (const Sent& sent : sent_) check(sent);
    must(records_checked_ == engine_->records_out() || *engine_->error());
  }

 private:
  struct Sent {  // in the order of the sequence numbers
    Blob bytes;
    size_t size;
  };

  void peer_seals(const Blob& content, uint8_t type, size_t zeros) {
    if (content.size() + 1 + zeros > 65000) return;
    append(wire_, peer_.seal(content, type, zeros));
    if (type == kDataType) append(data_, content);
    without_data_ = type == kDataType && !content.empty() ? 0 : without_data_ + 1;
    honest_ = honest_ && without_data_ <= 32 && content.size() + 1 + zeros <= 16385;
  }

  void open(size_t bytes) {
    Blob given = part(wire_, 0, bytes);  // of exactly this size, for the sanitizer
    Blob answer(small_room_ ? 30 : 4096);
    WireOut out{answer.data(), 0, answer.size()};
    Pieces pieces;
    size_t taken = 0;
    const std::string before = engine_->error();
    const Opened opened = engine_->open(given, taken, pieces, out);
    must(taken <= given.size());
    must((opened == Opened::failed) == (*engine_->error() != '\0'));
    must(before.empty() ||
         (opened == Opened::failed && before == engine_->error() && taken == 0 && out.size == 0));
    must(!closed_ || (opened == Opened::closed && taken == given.size() && pieces.empty()) ||
         !before.empty());
    closed_ = closed_ || opened == Opened::closed;
    for (const auto& piece : pieces) {
      must(!piece.empty() && piece.data() >= given.data() &&
           piece.data() + piece.size() <= given.data() + given.size());
      must(piece.size() <= data_.size() - delivered_ &&
           std::equal(piece.begin(), piece.end(), data_.begin() + static_cast<ptrdiff_t>(delivered_)));
      delivered_ += piece.size();
    }
    std::copy(given.begin(), given.end(), wire_.begin());
    wire_.erase(wire_.begin(), wire_.begin() + static_cast<ptrdiff_t>(taken));
    if (out.size > 0) sent_.push_back({std::move(answer), out.size});
  }

  void seal(size_t bytes, bool and_finish) {
    plains_.emplace_back(bytes, std::byte{0x63});
    Blob room(RecordEngine::sealed_bound(bytes));
    WireOut out{room.data(), 0, room.size()};
    size_t taken = 0;
    const bool was_well = !*engine_->error();
    const bool ok = engine_->seal(plains_.back(), out, *batch_, taken);
    must(taken <= bytes && ok == !*engine_->error() && (was_well || (!ok && out.size == 0)));
    if (out.size > 0) sent_.push_back({std::move(room), out.size});  // the jobs' bytes stay where they are
    if (and_finish) finish();
  }

  void finish() {
    engines_->start(*batch_);
    engines_->finish(*batch_);
    must(batch_->empty());
    plains_.clear();
  }

  void close() {
    Blob room(64);
    WireOut out{room.data(), 0, room.size()};
    engine_->close(out);
    if (out.size > 0) sent_.push_back({std::move(room), out.size});
  }

  // All of it opens at the peer, in order.
  void check(const Sent& sent) {
    for (size_t at = 0; at < sent.size;) {
      must(sent.size - at > 5);
      const size_t size =
          5 + (static_cast<size_t>(sent.bytes[at + 3]) << 8 | static_cast<size_t>(sent.bytes[at + 4]));
      must(size <= sent.size - at);
      const auto inner = ours_.open(std::span(sent.bytes).subspan(at, size));
      must(inner.has_value());
      ++records_checked_;
      if (inner->type == kHandshakeType) {
        must(inner->content == key_update(0));
        ours_.update();
      }
      at += size;
    }
  }

  Suite suite_;
  Oracle ours_, peer_;
  Blob saved_;
  Sink sink_;
  std::unique_ptr<AeadEngines> engines_;
  std::unique_ptr<RecordEngine> engine_;
  std::unique_ptr<RecordBatch> batch_;
  Role role_;
  bool small_room_ = false, closed_ = false;
  bool honest_ = true;       // the peer did nothing but what a good one may
  size_t without_data_ = 0;  // records in a row
  Blob wire_;                // on its way to us
  Blob data_;                // what the peer sealed as data
  size_t delivered_ = 0, records_checked_ = 0;
  std::vector<Blob> plains_;  // lent
  std::vector<Sent> sent_;
};

}  // namespace
}  // namespace fsbl::records

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fsbl;
  records::Script script(data, size);
  constexpr Cipher kAll[] = {Cipher::aes_128_gcm, Cipher::aes_256_gcm, Cipher::chacha20_poly1305};
  const size_t options = script.byte();
  records::Flow flow(kAll[options / 32 % 3], options & 16 ? Role::server : Role::client, options % 16);
  for (int turns = 0; turns < 300 && !script.over(); ++turns) flow.turn(script);
  flow.end();
  return 0;
}
