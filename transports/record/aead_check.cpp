// What a cipher back end must be able to do before it is trusted with a record: known answers, and random records
// against OpenSSL's EVP both ways. A null cipher fails the first; one that ignores tags fails the tampering.
#include <fmt/format.h>

#include <cstring>
#include <random>

#include "transports/record/evp_aead.h"

namespace fsbl {
namespace {

struct KnownAnswer {
  Cipher cipher;
  const char* source;
  std::string_view key, nonce, plain, record;   // hexadecimal; the record with its header
};

// RFC 8448, section 3 (simple 1-RTT handshake): the client's application data, 50 bytes 00 01 ... 31. The other two
// hold the same plaintext, under key 00 01 ... 1f and nonce a0 a1 ... ab; computed with GnuTLS's nettle.
constexpr std::string_view kPlain =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031";
constexpr std::string_view kKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
constexpr std::string_view kNonce = "a0a1a2a3a4a5a6a7a8a9aaab";
constexpr KnownAnswer kKnownAnswers[] = {
    {Cipher::aes_128_gcm, "RFC 8448, 3", "17422dda596ed5d9acd890e3c63f5051", "5b78923dee08579033e523d9", kPlain,
     "1703030043  a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f5a"
     "6292a2977014bd1e3deae63aeebb21694915e4"},
    {Cipher::aes_256_gcm, "nettle", kKey, kNonce, kPlain,
     "1703030043  e6197e2e41ce04b86a6c8dd80b77ced160bd4b0386a2547b84173c9d63b66b1ef25765dc8b07751a"
     "77b52ee32557add6772a516db99fd157a67a9b0cd2b946892a9256"},
    {Cipher::chacha20_poly1305, "nettle", kKey, kNonce, kPlain,
     "1703030043  0caa7a5c49e3c4aaa806f91ff0f7f3f48d4fc1ac577f76b4acc1c1aa6d7fdd134ca134a98aecd9ad"
     "eee5df96317c56697af55d18aa454f3f931507996ec159b7dd85d3"},
};

std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> out;
  int high = -1;
  for (char c : text) {
    if (c == ' ') continue;
    const int digit = c >= 'a' ? c - 'a' + 10 : c - '0';
    if (high >= 0) out.push_back(static_cast<std::byte>(high * 16 + digit));
    high = high >= 0 ? -1 : digit;
  }
  return out;
}

void write_header(std::byte* record, size_t behind) {
  const unsigned char header[kRecordHeaderBytes] = {23, 3, 3, static_cast<unsigned char>(behind >> 8),
                                                    static_cast<unsigned char>(behind)};
  std::memcpy(record, header, sizeof header);
}

// A key for one use, dropped again.
class Key {
 public:
  static Expected<Key> add(Aead& aead, std::span<const std::byte> key, KeyUse use) {
    FSBL_ASSIGN(const KeyHandle handle, aead.add_key(key, use));
    return Key(aead, handle);
  }
  Key(Key&& other) noexcept : aead_(std::exchange(other.aead_, nullptr)), handle_(other.handle_) {}
  Key& operator=(Key&&) = delete;
  ~Key() {
    if (aead_) aead_->drop_key(handle_);
  }
  KeyHandle handle() const { return handle_; }

 private:
  Key(Aead& aead, KeyHandle handle) : aead_(&aead), handle_(handle) {}
  Aead* aead_;
  KeyHandle handle_;
};

struct Sample {
  std::vector<std::byte> plain, record;
  std::array<std::byte, kNonceBytes> nonce{};
};

Sample make_sample(std::mt19937_64& random, size_t bytes) {
  Sample sample;
  sample.plain.resize(bytes);
  for (std::byte& b : sample.plain) b = static_cast<std::byte>(random());
  for (std::byte& b : sample.nonce) b = static_cast<std::byte>(random());
  sample.record.resize(kRecordHeaderBytes + bytes + 1 + kTagBytes);
  write_header(sample.record.data(), bytes + 1 + kTagBytes);
  return sample;
}

RecordJob seal_job(const Key& key, Sample& sample) {
  RecordJob job;
  job.key = key.handle();
  job.type = 23;
  job.bytes = static_cast<uint32_t>(sample.plain.size());
  job.plain = sample.plain.data();
  job.record = sample.record.data();
  job.nonce = sample.nonce;
  return job;
}

RecordJob open_job(const Key& key, Sample& sample) {
  RecordJob job;
  job.key = key.handle();
  job.bytes = static_cast<uint32_t>(sample.record.size() - kRecordHeaderBytes);
  job.record = sample.record.data();
  job.nonce = sample.nonce;
  return job;
}

void run(Aead& aead, std::span<RecordJob> jobs) {
  for (RecordJob& job : jobs) job.state = JobState::started;
  aead.start(jobs);
  aead.finish(jobs);
}

bool opened_to(const Sample& sample) {
  const std::byte* out = sample.record.data() + kRecordHeaderBytes;
  return std::memcmp(out, sample.plain.data(), sample.plain.size()) == 0 && out[sample.plain.size()] == std::byte{23};
}

Expected<> check_known_answer(Aead& aead, const KnownAnswer& known) {
  const std::string what = fmt::format("known answer ({})", known.source);
  FSBL_ASSIGN(const Key seals, Key::add(aead, from_hex(known.key), KeyUse::seal));
  FSBL_ASSIGN(const Key opens, Key::add(aead, from_hex(known.key), KeyUse::open));
  Sample sample;
  sample.plain = from_hex(known.plain);
  const std::vector<std::byte> expected = from_hex(known.record), nonce = from_hex(known.nonce);
  std::copy(nonce.begin(), nonce.end(), sample.nonce.begin());
  sample.record.resize(expected.size());
  std::copy_n(expected.begin(), kRecordHeaderBytes, sample.record.begin());
  RecordJob job = seal_job(seals, sample);
  run(aead, {&job, 1});
  if (job.state != JobState::done) return fault(what, "not sealed");
  if (sample.record != expected) return fault(what, "sealed to something else");
  job = open_job(opens, sample);
  run(aead, {&job, 1});
  if (job.state != JobState::done || !opened_to(sample)) return fault(what, "does not open to its plaintext");
  return {};
}

constexpr size_t kSizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1350, 1420, 4095, 4096, 16383, 16384};

Expected<> cross_check(Aead& aead, Aead& reference, Cipher cipher) {
  std::mt19937_64 random(0x5f8b1);   // any seed: the reference is asked about the same bytes
  std::vector<std::byte> key(key_bytes(cipher));
  for (std::byte& b : key) b = static_cast<std::byte>(random());
  FSBL_ASSIGN(const Key seals, Key::add(aead, key, KeyUse::seal));
  FSBL_ASSIGN(const Key opens, Key::add(aead, key, KeyUse::open));
  FSBL_ASSIGN(const Key reference_seals, Key::add(reference, key, KeyUse::seal));
  std::vector<Sample> ours, theirs;
  for (size_t bytes : kSizes) ours.push_back(make_sample(random, bytes));
  theirs = ours;
  std::vector<RecordJob> jobs, reference_jobs;
  for (size_t i = 0; i < ours.size(); ++i) {
    jobs.push_back(seal_job(seals, ours[i]));
    reference_jobs.push_back(seal_job(reference_seals, theirs[i]));
  }
  static_assert(std::size(kSizes) <= Aead::kBurst);
  run(aead, jobs);
  run(reference, reference_jobs);
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string what = fmt::format("a record of {} bytes", kSizes[i]);
    if (jobs[i].state != JobState::done) return fault(what, "not sealed");
    if (ours[i].record != theirs[i].record) return fault(what, "sealed to something else than OpenSSL seals it to");
  }

  // Hurt every third in its header, its text and its tag in turn; those must fail and the others must not.
  const auto hurt = [](size_t i) { return i % 3 == 0; };
  for (size_t i = 0; i < ours.size(); i += 3) {
    const size_t at[] = {3, kRecordHeaderBytes, ours[i].record.size() - 1};
    ours[i].record[at[i / 3 % 3]] ^= std::byte{1};
  }
  for (size_t i = 0; i < ours.size(); ++i) jobs[i] = open_job(opens, ours[i]);
  run(aead, jobs);
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string what = fmt::format("a record of {} bytes", kSizes[i]);
    if (hurt(i) && jobs[i].state == JobState::done) return fault(what, "opens although it was tampered with");
    if (!hurt(i) && (jobs[i].state != JobState::done || !opened_to(ours[i])))
      return fault(what, "does not open to its plaintext");
  }
  return {};
}

}  // namespace

Expected<> check_aead(Aead& aead, Cipher cipher) {
  for (const KnownAnswer& known : kKnownAnswers)
    if (known.cipher == cipher) FSBL_TRY(check_known_answer(aead, known));
  FSBL_ASSIGN(const auto device, make_evp_device({.cipher = cipher}));
  FSBL_ASSIGN(const auto reference, device->make_queue());
  return cross_check(aead, *reference, cipher);
}

}  // namespace fsbl
