#include "transports/record/record_layer.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>

namespace fsbl {
namespace {

constexpr uint8_t kAlert = 21, kHandshake = 22, kApplicationData = 23;
constexpr uint8_t kCloseNotify = 0;
constexpr uint8_t kKeyUpdate = 24;

}  // namespace

uint64_t rekey_limit(Cipher cipher) {
  return cipher == Cipher::chacha20_poly1305 ? uint64_t{1} << 60 : uint64_t{1} << 24;
}

Expected<std::unique_ptr<RecordLayer>> RecordLayer::create(RecordShared& shared, const TrafficSecrets& secrets,
                                                           Role role, TicketSink* tickets, size_t most_plain) {
  std::unique_ptr<RecordLayer> layer(new RecordLayer(shared, role, tickets));
  if (secrets.bytes != hash_bytes(shared.suite.hash)) return fault("take over the records", "no traffic secrets from the handshake");
  layer->most_plain_ = most_plain;
  layer->out_.secret = role == Role::client ? secrets.client : secrets.server;
  layer->in_.secret = role == Role::client ? secrets.server : secrets.client;
  layer->out_.sequence = secrets.sent_records;
  layer->in_.sequence = secrets.received_records;
  if (!layer->install(layer->out_, KeyUse::seal) || !layer->install(layer->in_, KeyUse::open))
    return fault("take over the records", layer->error_);
  return layer;
}

RecordLayer::~RecordLayer() {
  for (Half* half : {&out_, &in_})
    if (half->has_handle) shared_.aead.drop_key(half->handle);
}

// Gives the cipher back end the key of the direction's secret.
bool RecordLayer::install(Half& half, KeyUse use) noexcept {
  try {
    if (half.has_handle) shared_.aead.drop_key(half.handle);
    half.has_handle = false;
    const auto secret = std::span(half.secret).first(hash_bytes(shared_.suite.hash));
    if (!derive_key(shared_.suite, secret, half.key)) {
      error_ = "HKDF failed";
      return false;
    }
    const auto handle = shared_.aead.add_key(std::span(half.key.key).first(key_bytes(shared_.suite.cipher)), use);
    if (!handle) {
      error_ = "the cipher back end takes no more keys";
      return false;
    }
    half.handle = *handle;
    half.has_handle = true;
    return true;
  } catch (...) {
    error_ = "out of memory";
    return false;
  }
}

bool RecordLayer::next_key(Half& half, KeyUse use) noexcept {
  if (!update_secret(shared_.suite.hash, std::span(half.secret).first(hash_bytes(shared_.suite.hash)))) {
    error_ = "HKDF failed";
    return false;
  }
  half.sequence = 0;
  return install(half, use);
}

void RecordLayer::plan_seal(RecordJob& job, uint8_t type, std::span<const std::byte> plain, std::byte* record) noexcept {
  const size_t behind = plain.size() + 1 + kTagBytes;
  record[0] = std::byte{kApplicationData};
  record[1] = record[2] = std::byte{3};
  record[3] = static_cast<std::byte>(behind >> 8);
  record[4] = static_cast<std::byte>(behind);
  job.key = out_.handle;
  job.state = JobState::idle;
  job.type = type;
  job.bytes = static_cast<uint32_t>(plain.size());
  job.plain = plain.data();
  job.record = record;
  job.nonce = record_nonce(out_.key.iv, out_.sequence++);
  ++records_out_;
}

// A record of our own, small and rare: sealed at once. Its place on the wire is behind everything that was planned:
// the driver sends that first.
bool RecordLayer::seal_now(uint8_t type, std::span<const std::byte> plain, WireOut& out) noexcept {
  std::byte* record = out.extend(kRecordHeaderBytes + plain.size() + 1 + kTagBytes);
  if (!record) return false;
  RecordJob job;
  plan_seal(job, type, plain, record);
  job.state = JobState::started;
  shared_.aead.start({&job, 1});
  shared_.aead.finish({&job, 1});
  if (job.state == JobState::done) return true;
  out.size = static_cast<size_t>(record - out.data);   // it isn't sent
  error_ = kNotSealed;
  return false;
}

bool RecordLayer::send_key_update(WireOut& out) noexcept {
  // KeyUpdate { update_not_requested }: four bytes of header and one of body (4.6.3).
  constexpr std::byte kMessage[] = {std::byte{kKeyUpdate}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}};
  if (!seal_now(kHandshake, kMessage, out)) {
    if (!*error_) error_ = "no room for a KeyUpdate";
    return false;
  }
  ++key_updates_out_;
  update_owed_ = false;
  return next_key(out_, KeyUse::seal);
}

bool RecordLayer::seal(std::span<const std::byte> plain, WireOut& out, RecordBatch& planned, size_t& taken) noexcept {
  auto& batch = static_cast<AeadBatch&>(planned);
  taken = 0;
  if (*error_) return false;   // there may be no key any more
  while (taken < plain.size() && batch.count < batch.jobs.size()) {
    if (update_owed_ || out_.sequence >= shared_.rekey_records) {
      if (under_way_ > 0) return true;  // they still need the old key
      if (!send_key_update(out)) return false;
    }
    const auto piece = plain.subspan(taken, std::min(plain.size() - taken, most_plain_));
    std::byte* record = out.extend(kRecordHeaderBytes + piece.size() + 1 + kTagBytes);
    if (!record) {
      error_ = "no room for a record";
      return false;
    }
    batch.owner[batch.count] = this;
    ++under_way_;
    plan_seal(batch.jobs[batch.count++], kApplicationData, piece, record);
    taken += piece.size();
  }
  return true;
}

void RecordLayer::close(WireOut& out) noexcept {
  if (*error_) return;   // a fatal alert was the last word; there may be no key any more
  constexpr std::byte kMessage[] = {std::byte{1}, std::byte{kCloseNotify}};
  seal_now(kAlert, kMessage, out);
}

AeadEngines::AeadEngines(std::shared_ptr<AeadDevice> device, std::unique_ptr<Aead> aead, Suite suite,
                         const EngineConfig& config, std::optional<int> core)
    : device_(std::move(device)), aead_(std::move(aead)), counted_before_(aead_->counters()),
      shared_{*aead_, suite, rekey_limit(suite.cipher), {}, {}}, role_(config.role), core_(core),
      overlaps_(core || device_->facts().device_class != "cpu") {
  if (const uint64_t records = config.cell->tls.rekey_records; records > 0)
    shared_.rekey_records = std::min(shared_.rekey_records, records);
  shared_.ticket_copy.resize(kRecordHeaderBytes + kMaxSealedBytes);
}

Expected<std::unique_ptr<RecordEngine>> AeadEngines::make(const EngineContext& context) {
  if (!context.secrets) return fault("take over the records", "no traffic secrets from the handshake");
  // RFC 6066, 4: 1 to 4 stand for 2^9 to 2^12 bytes.
  const SSL_SESSION* session = context.ssl ? SSL_get0_session(context.ssl) : nullptr;
  const unsigned fragment = session ? SSL_SESSION_get_max_fragment_length(session) : 0;
  const size_t most_plain = fragment >= 1 && fragment <= 4 ? size_t{256} << fragment : kMaxPlainBytes;
  return RecordLayer::create(shared_, *context.secrets, role_, context.tickets, most_plain);
}

void AeadEngines::start(RecordBatch& planned) noexcept {
  auto& batch = static_cast<AeadBatch&>(planned);
  for (RecordJob& job : batch.planned()) job.state = JobState::started;
  if (batch.count > 0) aead_->start(batch.planned());
}

void AeadEngines::finish(RecordBatch& planned) noexcept {
  auto& batch = static_cast<AeadBatch&>(planned);
  if (batch.count > 0) aead_->finish(batch.planned());
  for (size_t i = 0; i < batch.count; ++i) batch.owner[i]->ended(batch.jobs[i].state == JobState::done);
  batch.count = 0;
}

Json AeadEngines::facts() const {
  const AeadFacts& facts = device_->facts();
  Json json = {{"device", facts.device}, {"driver", facts.driver}, {"version", facts.version},
               {"device_class", facts.device_class}, {"features", facts.features}};
  if (core_) json["core"] = *core_;
  Json counters = Json::object();
  const auto counted = aead_->counters();
  for (size_t i = 0; i < counted.size(); ++i) counters[counted[i].first] = counted[i].second - counted_before_[i].second;
  json["counters"] = std::move(counters);
  if (!aead_->record_counter().empty()) json["record_counter"] = aead_->record_counter();
  return json;
}

}  // namespace fsbl
