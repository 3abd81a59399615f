// The receiving half of the record layer: bursts of records are opened in place, then read one after the other.
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>

#include "harness/identity/openssl.h"
#include "transports/record/record_layer.h"

namespace fsbl {
namespace {

constexpr uint8_t kChangeCipherSpec = 20, kAlert = 21, kHandshake = 22, kApplicationData = 23;
constexpr uint8_t kNewSessionTicket = 4, kKeyUpdate = 24;
constexpr uint8_t kFatal = 2;
// Records without application data in a row: more is an attack, not a protocol (OpenSSL has the same limit).
constexpr uint32_t kMostWithoutData = 32;

size_t record_bytes(const std::byte* header) {
  return static_cast<size_t>(header[3]) << 8 | static_cast<size_t>(header[4]);
}

}  // namespace

// Plans the whole records at the beginning of `wire` into shared_.opening; returns their bytes. None planned and an
// error: the stream is broken.
size_t RecordLayer::plan_opens(std::span<std::byte> wire, WireOut& out) noexcept {
  AeadBatch& batch = shared_.opening;
  batch.count = 0;
  size_t at = 0;
  while (batch.count < batch.jobs.size() && wire.size() - at >= kRecordHeaderBytes) {
    std::byte* record = wire.data() + at;
    const size_t behind = record_bytes(record);
    const auto type = static_cast<uint8_t>(record[0]);
    const bool good = type == kApplicationData && behind > kTagBytes && behind <= kMaxSealedBytes;
    if (!good) {
      if (batch.count > 0) break;  // those before it first
      if (type != kApplicationData)
        fail(SSL_AD_UNEXPECTED_MESSAGE, type == kChangeCipherSpec ? "change_cipher_spec after the handshake" : "a record of unknown type", out);
      else if (behind > kMaxSealedBytes)
        fail(SSL_AD_RECORD_OVERFLOW, "a record longer than the protocol allows", out);
      else
        fail(SSL_AD_BAD_RECORD_MAC, "a record too short for its tag", out);
      return 0;
    }
    if (wire.size() - at < kRecordHeaderBytes + behind) break;
    RecordJob& job = batch.jobs[batch.count++];
    job.key = in_.handle;
    job.state = JobState::started;
    job.bytes = static_cast<uint32_t>(behind);
    job.record = record;
    job.nonce = record_nonce(in_.key.iv, in_.sequence + batch.count - 1);
    at += kRecordHeaderBytes + behind;
    if (tickets_) {  // opening destroys the ciphertext, which a ticket's keeper wants
      std::memcpy(shared_.ticket_copy.data(), record, kRecordHeaderBytes + behind);
      break;
    }
  }
  return at;
}

Opened RecordLayer::open(std::span<std::byte> wire, size_t& taken, Pieces& plain, WireOut& out) noexcept {
  taken = 0;
  if (closed_) {  // what comes after close_notify is ignored (6.1)
    taken = wire.size();
    return Opened::closed;
  }
  if (*error_) return Opened::failed;
  for (;;) {
    const size_t bytes = plan_opens(wire.subspan(taken), out);
    if (bytes == 0) return *error_ ? Opened::failed : Opened::ok;
    const auto jobs = shared_.opening.planned();
    std::array<Head, Aead::kBurst> heads;
    for (size_t k = 1; k < jobs.size(); ++k) std::copy_n(jobs[k].record + kRecordHeaderBytes, heads[k].size(), heads[k].begin());
    shared_.aead.start(jobs);
    shared_.aead.finish(jobs);
    const TrafficKey key = in_.key;
    rekeyed_ = false;
    size_t i = 0;
    for (; i < jobs.size() && !rekeyed_; ++i) {
      if (jobs[i].state != JobState::done)
        return fail(SSL_AD_BAD_RECORD_MAC, "bad record mac: a record that does not authenticate", out);
      taken += kRecordHeaderBytes + jobs[i].bytes;
      ++in_.sequence;
      ++records_in_;
      const size_t ciphertext = tickets_ ? kRecordHeaderBytes + jobs[i].bytes : 0;
      const Opened opened = take(jobs[i], std::span(shared_.ticket_copy).first(ciphertext), plain, out);
      if (opened != Opened::ok) return opened;
    }
    // A KeyUpdate in the middle of a burst: what follows was sealed with the new key and is opened again.
    for (; i < jobs.size(); ++i) undo_open(jobs[i], key, heads[i]);
  }
}

// Takes back what opening with the wrong key did to a record: nothing, where the back end gives out authenticated text
// only. Else both ciphers XOR a key stream, so doing it again gives the ciphertext; whether that was right is for the
// tag to say, under the right key.
void RecordLayer::undo_open(const RecordJob& job, const TrafficKey& key, const Head& head) noexcept {
  std::byte* const body = job.record + kRecordHeaderBytes;
  const size_t bytes = job.bytes - kTagBytes;
  if (bytes <= head.size() || std::equal(head.begin(), head.end(), body)) {
    std::copy_n(head.begin(), std::min(bytes, head.size()), body);
    return;
  }
  using CtxPtr = std::unique_ptr<EVP_CIPHER_CTX, OpensslFree<EVP_CIPHER_CTX_free>>;
  const CtxPtr ctx(EVP_CIPHER_CTX_new());
  const Cipher cipher = shared_.suite.cipher;
  std::array<unsigned char, 16> iv{};
  const EVP_CIPHER* stream = cipher == Cipher::aes_128_gcm   ? EVP_aes_128_ctr()
                             : cipher == Cipher::aes_256_gcm ? EVP_aes_256_ctr()
                                                             : EVP_chacha20();
  if (cipher == Cipher::chacha20_poly1305) {  // a little-endian counter before the nonce, 1 for the text (RFC 8439, 2.8)
    iv[0] = 1;
    std::memcpy(&iv[4], job.nonce.data(), kNonceBytes);
  } else {  // the counter behind the nonce, 2 for the text (NIST SP 800-38D, 7.1)
    std::memcpy(iv.data(), job.nonce.data(), kNonceBytes);
    iv[15] = 2;
  }
  auto* text = reinterpret_cast<unsigned char*>(body);
  int n = 0;
  if (ctx && EVP_EncryptInit_ex(ctx.get(), stream, nullptr, reinterpret_cast<const unsigned char*>(key.key.data()), iv.data()) == 1)
    EVP_EncryptUpdate(ctx.get(), text, &n, text, static_cast<int>(bytes));
}

// One opened record: TLSInnerPlaintext { content, type, zeros } (5.2).
Opened RecordLayer::take(const RecordJob& job, std::span<const std::byte> ciphertext, Pieces& plain, WireOut& out) noexcept {
  const std::byte* text = job.record + kRecordHeaderBytes;
  size_t size = job.bytes - kTagBytes;
  if (size > kMaxPlainBytes + 1) return fail(SSL_AD_RECORD_OVERFLOW, "a record longer than the protocol allows", out);
  while (size > 0 && text[size - 1] == std::byte{0}) --size;
  if (size == 0) return fail(SSL_AD_UNEXPECTED_MESSAGE, "a record without a content type", out);
  const auto type = static_cast<uint8_t>(text[--size]);
  const std::span<const std::byte> content(text, size);
  const bool inside_message = message_bytes_ > 0 || body_left_ > 0;
  if (inside_message && type != kHandshake)
    return fail(SSL_AD_UNEXPECTED_MESSAGE, "a record inside a handshake message", out);
  if (type == kApplicationData && size > 0) {
    records_without_data_ = 0;
    tickets_ = nullptr;  // its keeper has to see every record: tickets come before data
    plain.push_back(content);
    return Opened::ok;
  }
  if (++records_without_data_ > kMostWithoutData)
    return fail(SSL_AD_UNEXPECTED_MESSAGE, "too many records without data", out);
  switch (type) {
    case kApplicationData:
      tickets_ = nullptr;
      return Opened::ok;
    case kAlert:
      return take_alert(content, out);
    case kHandshake:
      if (size == 0) return fail(SSL_AD_UNEXPECTED_MESSAGE, "an empty handshake record", out);
      return take_handshake(content, ciphertext, out);
  }
  return fail(SSL_AD_UNEXPECTED_MESSAGE, "a record of unknown content type", out);
}

Opened RecordLayer::take_alert(std::span<const std::byte> text, WireOut& out) noexcept {
  if (text.empty()) return fail(SSL_AD_UNEXPECTED_MESSAGE, "an empty alert", out);   // 5.4
  if (text.size() != 2) return fail(SSL_AD_DECODE_ERROR, "a malformed alert", out);
  const auto description = static_cast<uint8_t>(text[1]);
  if (description == SSL_AD_CLOSE_NOTIFY) {
    closed_ = true;
    return Opened::closed;
  }
  if (description == SSL_AD_USER_CANCELLED) {   // close_notify follows (6.1)
    tickets_ = nullptr;
    return Opened::ok;
  }
  alert_ = description == TLS13_AD_CERTIFICATE_REQUIRED ? "certificate required" : SSL_alert_desc_string_long(description);
  error_ = "alert from the peer";
  return Opened::failed;
}

// Post-handshake messages (4.6): tickets are passed on or dropped, KeyUpdate is done. Messages may span records.
Opened RecordLayer::take_handshake(std::span<const std::byte> text, std::span<const std::byte> ciphertext,
                                   WireOut& out) noexcept {
  const auto first = static_cast<uint8_t>(message_bytes_ > 0 ? message_[0] : text[0]);
  const bool ticket = body_left_ > 0 || first == kNewSessionTicket;
  if (tickets_ && ticket) tickets_->ticket(ciphertext);
  while (!text.empty()) {
    if (body_left_ > 0) {
      const size_t n = std::min(body_left_, text.size());
      body_left_ -= n;
      text = text.subspan(n);
      continue;
    }
    const size_t n = std::min(message_.size() - message_bytes_, text.size());
    std::copy_n(text.begin(), n, message_.begin() + static_cast<ptrdiff_t>(message_bytes_));
    message_bytes_ += n;
    text = text.subspan(n);
    if (message_bytes_ < message_.size()) break;
    const auto type = static_cast<uint8_t>(message_[0]);
    const size_t body = static_cast<size_t>(message_[1]) << 16 | static_cast<size_t>(message_[2]) << 8 |
                        static_cast<size_t>(message_[3]);
    if (type == kKeyUpdate) {
      if (body != 1) return fail(SSL_AD_DECODE_ERROR, "a malformed KeyUpdate", out);
      if (text.empty()) break;  // the header is kept: its one byte comes with the next record
      const auto request = static_cast<uint8_t>(text[0]);
      message_bytes_ = 0;
      return take_key_update(request, text.size() == 1, out);
    }
    if (type != kNewSessionTicket || role_ == Role::server) return fail(SSL_AD_UNEXPECTED_MESSAGE, "an unexpected handshake message", out);
    body_left_ = body;
    message_bytes_ = 0;
  }
  return Opened::ok;
}

Opened RecordLayer::take_key_update(uint8_t request, bool last, WireOut& out) noexcept {
  if (request > 1) return fail(SSL_AD_ILLEGAL_PARAMETER, "a malformed KeyUpdate", out);
  if (!last) return fail(SSL_AD_UNEXPECTED_MESSAGE, "a handshake message that spans a key change", out);
  ++key_updates_in_;
  tickets_ = nullptr;
  rekeyed_ = true;
  if (!next_key(in_, KeyUse::open)) return Opened::failed;
  update_owed_ = update_owed_ || request == 1;
  if (!update_owed_ || under_way_ > 0 || send_key_update(out)) return Opened::ok;  // under way: with the next record
  return Opened::failed;
}

// Says why in an alert to the peer; the flow is dead.
Opened RecordLayer::fail(uint8_t alert, const char* why, WireOut& out) noexcept {
  const std::byte message[] = {std::byte{kFatal}, static_cast<std::byte>(alert)};
  seal_now(kAlert, message, out);
  error_ = why;
  return Opened::failed;
}

}  // namespace fsbl
