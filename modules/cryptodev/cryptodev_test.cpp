// The DPDK module as the worker loads it: every driver against OpenSSL's EVP in both directions, what must be refused,
// and what it may not touch. One process, one EAL, several devices. A driver that this host lacks is skipped.
#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <rte_cryptodev.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "transports/record/aead.h"

namespace fsbl {
namespace {

using Bytes = std::vector<std::byte>;

// Of the module, or of what it brings with it.
void* symbol(const char* name) {
  static void* const handle = dlopen(FSBL_CRYPTODEV, RTLD_NOW | RTLD_LOCAL);
  void* found = handle ? dlsym(handle, name) : nullptr;
  if (found) return found;
  fprintf(stderr, "%s\n", dlerror());
  abort();
}

const AeadModule& module() { return *static_cast<const AeadModule*>(symbol("fsbl_aead_module")); }

const EVP_CIPHER* evp(Cipher cipher) {
  switch (cipher) {
    case Cipher::aes_128_gcm: return EVP_aes_128_gcm();
    case Cipher::aes_256_gcm: return EVP_aes_256_gcm();
    default: return EVP_chacha20_poly1305();
  }
}

unsigned char* u8(const std::byte* p) { return reinterpret_cast<unsigned char*>(const_cast<std::byte*>(p)); }

// The sealed record, header and all, as OpenSSL makes it.
Bytes seal_by_openssl(Cipher cipher, const Bytes& key, const std::array<std::byte, 12>& nonce, const Bytes& plain,
                      uint8_t type) {
  Bytes inner = plain, record(kRecordHeaderBytes + plain.size() + 1 + kTagBytes);
  inner.push_back(std::byte{type});
  const size_t length = record.size() - kRecordHeaderBytes;
  const uint8_t header[] = {23, 3, 3, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
  std::memcpy(record.data(), header, sizeof header);
  EVP_CIPHER_CTX* ctx = EVP_CIPHER_CTX_new();
  int n = 0;
  EXPECT_EQ(EVP_EncryptInit_ex(ctx, evp(cipher), nullptr, u8(key.data()), u8(nonce.data())), 1);
  EXPECT_EQ(EVP_EncryptUpdate(ctx, nullptr, &n, header, sizeof header), 1);
  EXPECT_EQ(EVP_EncryptUpdate(ctx, u8(&record[5]), &n, u8(inner.data()), static_cast<int>(inner.size())), 1);
  EXPECT_EQ(EVP_EncryptFinal_ex(ctx, nullptr, &n), 1);
  EXPECT_EQ(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, kTagBytes, u8(&record[5 + inner.size()])), 1);
  EVP_CIPHER_CTX_free(ctx);
  return record;
}

struct KeyPair {
  Bytes key;
  KeyHandle seal = 0, open = 0;
};

// A record with what must become of it.
struct Case {
  RecordJob job;
  bool seals = false, good = true;
  Bytes plain, sealed, memory;   // memory: the record as the device sees it
};

constexpr size_t kSizes[] = {0, 1, 15, 16, 17, 63, 64, 255, 1023, 1024, 1350, 4096, 8192, 16383, 16384};
constexpr size_t kGuard = 32;   // bytes behind a record that nobody may write

class Bench {
 public:
  Bench(Aead& aead, Cipher cipher) : aead_(aead), cipher_(cipher) {
    for (int i = 0; i < 3; ++i) keys_.push_back(make_key());
  }
  ~Bench() {
    for (const KeyPair& pair : keys_) {
      aead_.drop_key(pair.seal);
      aead_.drop_key(pair.open);
    }
  }
  Bytes random_bytes(size_t n) {
    Bytes out(n);
    for (std::byte& b : out) b = static_cast<std::byte>(random_());
    return out;
  }
  KeyPair make_key() {
    KeyPair pair{.key = random_bytes(key_bytes(cipher_))};
    auto seal = aead_.add_key(pair.key, KeyUse::seal), open = aead_.add_key(pair.key, KeyUse::open);
    EXPECT_TRUE(seal) << seal.error().message();
    EXPECT_TRUE(open) << open.error().message();
    pair.seal = seal.value_or(0);
    pair.open = open.value_or(0);
    return pair;
  }
  Case make(size_t bytes, bool seals) {
    Case one;
    const KeyPair& pair = keys_[random_() % keys_.size()];
    const uint8_t type = random_() % 2 ? 23 : 22;
    one.seals = seals;
    one.plain = random_bytes(bytes);
    const Bytes nonce = random_bytes(kNonceBytes);
    std::memcpy(one.job.nonce.data(), nonce.data(), kNonceBytes);
    one.sealed = seal_by_openssl(cipher_, pair.key, one.job.nonce, one.plain, type);
    one.memory = one.sealed;
    if (seals) std::memset(one.memory.data() + kRecordHeaderBytes, 0xee, bytes + 1 + kTagBytes);
    one.memory.insert(one.memory.end(), kGuard, std::byte{0x5a});
    one.job.key = seals ? pair.seal : pair.open;
    one.job.type = type;
    one.job.bytes = static_cast<uint32_t>(seals ? bytes : one.sealed.size() - kRecordHeaderBytes);
    return one;
  }
  // Starts all cases, in bursts, two of them under way; then checks each.
  void run(std::deque<Case>& cases) {
    std::vector<RecordJob> jobs;
    for (Case& one : cases) {
      one.job.plain = one.plain.data();
      one.job.record = one.memory.data();
      jobs.push_back(one.job);
    }
    const auto burst = [&](size_t i) {
      return std::span(jobs).subspan(i, std::min(Aead::kBurst, jobs.size() - i));
    };
    aead_.start(burst(0));
    for (size_t i = 0; i < jobs.size(); i += Aead::kBurst) {
      if (i + Aead::kBurst < jobs.size()) aead_.start(burst(i + Aead::kBurst));
      aead_.finish(burst(i));
    }
    for (size_t i = 0; i < cases.size(); ++i) check(cases[i], jobs[i], i);
  }
  Cipher cipher() const { return cipher_; }
  std::vector<KeyPair>& keys() { return keys_; }

 private:
  void check(const Case& one, const RecordJob& job, size_t i) {
    const auto where = [&] { return testing::Message() << "case " << i << (one.seals ? " seal " : " open ")
                                                       << one.plain.size() << " bytes"; };
    for (size_t k = 0; k < kGuard; ++k)
      ASSERT_EQ(one.memory[one.sealed.size() + k], std::byte{0x5a}) << where() << ": wrote " << k << " bytes too far";
    if (!one.good) {
      ASSERT_EQ(job.state, JobState::failed) << where();
      return;
    }
    ASSERT_EQ(job.state, JobState::done) << where();
    if (one.seals) {
      ASSERT_EQ(std::memcmp(one.memory.data(), one.sealed.data(), one.sealed.size()), 0) << where();
    } else {
      ASSERT_TRUE(one.plain.empty() ||
                  std::memcmp(one.memory.data() + 5, one.plain.data(), one.plain.size()) == 0) << where();
      ASSERT_EQ(static_cast<uint8_t>(one.memory[5 + one.plain.size()]), job.type) << where();
    }
  }

  Aead& aead_;
  Cipher cipher_;
  std::mt19937_64 random_{20260611};
  std::vector<KeyPair> keys_;
};

// What a test says it says only where the driver is there at all.
Expected<std::unique_ptr<AeadDevice>> open_or_skip(const AeadConfig& config, bool& skip) {
  auto device = module().open(config);
  skip = !device && device.error().message().find("DPDK makes no device") != std::string::npos;
  return device;
}
#define OPEN_OR_SKIP(device, ...)                                                    \
  bool skip_##device = false;                                                        \
  auto device = open_or_skip(AeadConfig __VA_ARGS__, skip_##device);                 \
  if (skip_##device) GTEST_SKIP() << device.error().message()

struct Driver {
  const char* label;
  const char* device;
  std::vector<Cipher> ciphers;
};
void PrintTo(const Driver& driver, std::ostream* out) { *out << driver.device; }

const std::vector<Cipher> kGcm = {Cipher::aes_128_gcm, Cipher::aes_256_gcm};
const std::vector<Cipher> kAll = {Cipher::aes_128_gcm, Cipher::aes_256_gcm, Cipher::chacha20_poly1305};
const std::vector<Cipher> kChacha = {Cipher::chacha20_poly1305};

class EveryDriver : public testing::TestWithParam<Driver> {};

uint64_t counter(const Aead& aead, const std::string& name) {
  for (const auto& [key, value] : aead.counters())
    if (key == name) return value;
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

TEST_P(EveryDriver, agrees_with_openssl) {
  size_t ran = 0;
  for (const Cipher cipher : GetParam().ciphers) {
    OPEN_OR_SKIP(device, {cipher, GetParam().device, 1});
    ASSERT_TRUE(device) << device.error().message();
    auto queue = (*device)->make_queue();
    ASSERT_TRUE(queue) << queue.error().message();
    Aead& aead = **queue;
    Bench bench(aead, cipher);
    std::deque<Case> cases;
    for (const size_t bytes : kSizes)
      for (const bool seals : {true, false}) cases.push_back(bench.make(bytes, seals));
    while (cases.size() < 3 * Aead::kBurst)
      cases.push_back(bench.make(kSizes[cases.size() * 7 % 15], cases.size() % 3));
    // Each of these stands among good ones.
    for (const size_t victim : {1u, 9u, 13u, 29u, 41u, 59u}) {
      Case& one = cases[victim];
      if (one.seals) one = bench.make(one.plain.size(), false);
      const size_t at = victim % 3 == 0 ? one.sealed.size() - 1 - victim % 16 : victim % 3 == 1 ? 5 : 3;
      one.memory[at] ^= std::byte{1};
      one.good = false;
    }
    bench.run(cases);
    EXPECT_EQ(counter(aead, "queue_failed"), 6u);
    EXPECT_EQ(counter(aead, "queue_done"), cases.size() - 6);
    EXPECT_EQ(aead.record_counter(), "dequeued_count");
    EXPECT_EQ(counter(aead, "dequeued_count"), cases.size());
    const AeadFacts& facts = (*device)->facts();
    EXPECT_EQ(facts.device_class, "cpu");
    EXPECT_EQ(facts.version.rfind("DPDK ", 0), 0u) << facts.version;
    EXPECT_EQ(facts.device.rfind(facts.driver, 0), 0u) << facts.device << " " << facts.driver;
    EXPECT_FALSE(facts.features.empty());
    ++ran;
  }
  EXPECT_EQ(ran, GetParam().ciphers.size());
}

INSTANTIATE_TEST_SUITE_P(
    cryptodev, EveryDriver,
    testing::Values(Driver{"auto_gcm", "auto", kGcm}, Driver{"auto_chacha", "auto", kChacha},
                    Driver{"aesni_gcm", "crypto_aesni_gcm", kGcm},
                    Driver{"chacha20_poly1305", "crypto_chacha20_poly1305", kChacha},
                    Driver{"aesni_mb", "crypto_aesni_mb", kAll}, Driver{"openssl", "crypto_openssl", kGcm},
                    Driver{"scheduler", "crypto_scheduler", kAll},
                    Driver{"scheduler_args",
                           "crypto_scheduler,worker=crypto_openssl_sa,worker=crypto_aesni_gcm_sb,mode=fail-over", kGcm},
                    Driver{"bounce_gcm", "crypto_aesni_gcm,fsbl_bounce=1", kGcm},
                    Driver{"bounce_chacha", "crypto_chacha20_poly1305,fsbl_bounce=1", kChacha}),
    [](const auto& info) { return std::string(info.param.label); });

// What a device must refuse, and what the reason must name.
struct Refusal {
  const char* label;
  AeadConfig config;
  ErrorKind kind;
  const char* why;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.config.device; }
class Refuses : public testing::TestWithParam<Refusal> {};

TEST_P(Refuses, and_says_why) {
  const auto device = module().open(GetParam().config);
  ASSERT_FALSE(device) << "took it: " << (*device)->facts().device;
  EXPECT_EQ(device.error().kind, GetParam().kind) << device.error().message();
  EXPECT_NE(device.error().message().find(GetParam().why), std::string::npos) << device.error().message();
  EXPECT_NE(device.error().what.find(GetParam().config.device), std::string::npos) << device.error().what;
  EXPECT_FALSE(device.error().fix.empty());
}

INSTANTIATE_TEST_SUITE_P(
    cryptodev, Refuses,
    testing::Values(
        Refusal{"null", {Cipher::aes_256_gcm, "crypto_null"}, ErrorKind::unavailable, "does not encrypt"},
        Refusal{"null_args", {Cipher::aes_256_gcm, "crypto_null0,x=1"}, ErrorKind::unavailable, "does not encrypt"},
        Refusal{"null_worker", {Cipher::aes_256_gcm, "crypto_scheduler,worker=crypto_null_w"}, ErrorKind::unavailable,
                "does not encrypt"},
        Refusal{"unknown", {Cipher::aes_256_gcm, "crypto_nothing"}, ErrorKind::unavailable, "no device crypto_nothing"},
        Refusal{"no_crypto", {Cipher::aes_256_gcm, "net_null"}, ErrorKind::bad_input, "neither"},
        Refusal{"empty", {Cipher::aes_256_gcm, ""}, ErrorKind::bad_input, "neither"},
        Refusal{"bad_argument", {Cipher::aes_256_gcm, "crypto_aesni_gcm,nonsense=1"}, ErrorKind::unavailable,
                "crypto_aesni_gcm"},
        Refusal{"bad_bounce", {Cipher::aes_256_gcm, "crypto_aesni_gcm,fsbl_bounce=yes"}, ErrorKind::bad_input,
                "fsbl_bounce=1"},
        Refusal{"no_pci", {Cipher::aes_256_gcm, "fe:1f.7"}, ErrorKind::unavailable, "no PCI device 0000:fe:1f.7"},
        Refusal{"scheduler_cores", {Cipher::aes_256_gcm, "crypto_scheduler,mode=multi-core"}, ErrorKind::unavailable,
                "cores of its own"}),
    [](const auto& info) { return std::string(info.param.label); });

TEST(cryptodev, a_cipher_that_the_driver_lacks) {
  OPEN_OR_SKIP(gcm, {Cipher::chacha20_poly1305, "crypto_aesni_gcm"});
  ASSERT_FALSE(gcm);
  EXPECT_NE(gcm.error().why.find("crypto_aesni_gcm lacks ChaCha20-Poly1305"), std::string::npos) << gcm.error().why;
  EXPECT_NE(gcm.error().fix.find("crypto_chacha20_poly1305"), std::string::npos) << gcm.error().fix;
  OPEN_OR_SKIP(chacha, {Cipher::aes_128_gcm, "crypto_chacha20_poly1305"});
  ASSERT_FALSE(chacha);
  EXPECT_NE(chacha.error().fix.find("crypto_aesni_gcm"), std::string::npos) << chacha.error().fix;
}

TEST(cryptodev, queues) {
  OPEN_OR_SKIP(few, {Cipher::aes_256_gcm, "crypto_aesni_gcm,max_nb_queue_pairs=2", 3});
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().why.find("3 load threads need a queue each"), std::string::npos) << few.error().message();

  OPEN_OR_SKIP(many, {Cipher::aes_256_gcm, "crypto_aesni_gcm", 12});
  ASSERT_TRUE(many) << many.error().message();
  std::vector<std::unique_ptr<Aead>> queues;
  for (int i = 0; i < 12; ++i) {
    auto queue = (*many)->make_queue();
    ASSERT_TRUE(queue) << queue.error().message();
    queues.push_back(std::move(*queue));
  }
  EXPECT_FALSE((*many)->make_queue());
  for (const size_t i : {0u, 11u}) {
    Bench bench(*queues[i], Cipher::aes_256_gcm);
    std::deque<Case> cases;
    for (int k = 0; k < 5 + static_cast<int>(i); ++k) cases.push_back(bench.make(1000, k % 2));
    bench.run(cases);
    EXPECT_EQ(counter(*queues[i], "queue_done"), 5 + i);
  }
  EXPECT_EQ(counter(*queues[5], "dequeued_count"), 21u);   // the device's: all queues together
  EXPECT_EQ(counter(*queues[5], "queue_done"), 0u);
}

TEST(cryptodev, bad_jobs_fail_and_hurt_nobody) {
  OPEN_OR_SKIP(device, {Cipher::aes_256_gcm, "auto"});
  ASSERT_TRUE(device) << device.error().message();
  auto queue = (*device)->make_queue();
  ASSERT_TRUE(queue);
  Bench bench(**queue, Cipher::aes_256_gcm);
  const KeyPair dropped = bench.make_key();
  (*queue)->drop_key(dropped.seal);
  std::deque<Case> cases;
  for (int i = 0; i < 8; ++i) cases.push_back(bench.make(500, i % 2 == 0));
  cases[0].job.key = dropped.seal;
  cases[1].job.bytes = kTagBytes;                     // open: a tag and nothing else
  cases[2].job.bytes = kMaxPlainBytes + 1;
  cases[3].job.bytes = kMaxSealedBytes + 1;
  cases[4].job.key = 60000;
  for (int i = 0; i < 5; ++i) cases[static_cast<size_t>(i)].good = false;
  bench.run(cases);
  (*queue)->drop_key(dropped.open);
  EXPECT_FALSE((*queue)->add_key(Bytes(16), KeyUse::seal)) << "16 bytes are no key of AES-256";
}

TEST(cryptodev, thousands_of_keys_come_and_go) {
  for (const char* name : {"crypto_aesni_gcm", "crypto_scheduler"}) {
    OPEN_OR_SKIP(device, {Cipher::aes_256_gcm, name});
    ASSERT_TRUE(device) << device.error().message();
    auto queue = (*device)->make_queue();
    ASSERT_TRUE(queue);
    Bench bench(**queue, Cipher::aes_256_gcm);
    for (int round = 0; round < 2; ++round) {
      while (bench.keys().size() < 2000) bench.keys().push_back(bench.make_key());
      std::deque<Case> cases;
      for (int i = 0; i < 200; ++i) cases.push_back(bench.make(300, i % 2));
      bench.run(cases);
      while (bench.keys().size() > 5) {
        (*queue)->drop_key(bench.keys().back().seal);
        (*queue)->drop_key(bench.keys().back().open);
        bench.keys().pop_back();
      }
    }
  }
}

// What a driver does wrong can't be had from a good one: these stand between the module and it.
using FastPath = struct rte_crypto_fp_ops;   // DPDK has a variable of that name as well
FastPath* hooks(const AeadDevice& device) {
  using IdOf = int (*)(const char*);
  const auto id_of = reinterpret_cast<IdOf>(symbol("rte_cryptodev_get_dev_id"));
  auto* all = static_cast<FastPath*>(symbol("rte_crypto_fp_ops"));
  return &all[id_of(device.facts().device.c_str())];
}
enqueue_pkt_burst_t& real_enqueue() {
  static enqueue_pkt_burst_t function = nullptr;
  return function;
}
uint16_t enqueue_three(void* queue, rte_crypto_op** ops, uint16_t count) {
  return real_enqueue()(queue, ops, std::min<uint16_t>(count, 3));
}
uint16_t enqueue_no_decryption(void* queue, rte_crypto_op** ops, uint16_t count) {
  for (uint16_t i = 0; i < count; ++i) {
    if (reinterpret_cast<rte_crypto_sym_op*>(ops[i] + 1)->aead.data.length != 701) continue;
    ops[i]->status = RTE_CRYPTO_OP_STATUS_INVALID_ARGS;
    return real_enqueue()(queue, ops, i);
  }
  return real_enqueue()(queue, ops, count);
}
uint16_t dequeue_nothing(void*, rte_crypto_op**, uint16_t) { return 0; }

TEST(cryptodev, a_driver_that_takes_few_at_once_or_refuses_some) {
  OPEN_OR_SKIP(device, {Cipher::aes_256_gcm, "auto"});
  ASSERT_TRUE(device) << device.error().message();
  auto queue = (*device)->make_queue();
  ASSERT_TRUE(queue);
  Bench bench(**queue, Cipher::aes_256_gcm);
  FastPath* ops = hooks(**device);
  real_enqueue() = ops->enqueue_burst;
  for (const auto hook : {enqueue_three, enqueue_no_decryption}) {
    ops->enqueue_burst = hook;
    std::deque<Case> cases;
    for (int i = 0; i < 150; ++i) {
      cases.push_back(bench.make(i % 7 == 0 ? 700 : 900, i % 2));
      cases.back().good = hook == enqueue_three || i % 7 != 0;
    }
    bench.run(cases);
  }
  ops->enqueue_burst = real_enqueue();
}

TEST(cryptodev, a_driver_that_does_not_answer_is_given_up) {
  OPEN_OR_SKIP(device, {Cipher::aes_256_gcm, "auto"});
  ASSERT_TRUE(device) << device.error().message();
  auto queue = (*device)->make_queue();
  ASSERT_TRUE(queue);
  Bench bench(**queue, Cipher::aes_256_gcm);
  FastPath* ops = hooks(**device);
  const auto real = ops->dequeue_burst;
  std::deque<Case> cases;
  for (int i = 0; i < 40; ++i) cases.push_back(bench.make(600, i % 2));
  for (Case& one : cases) one.good = false;
  ops->dequeue_burst = dequeue_nothing;
  bench.run(cases);
  // It answers again, too late: nobody may listen, or it would write where others work by now.
  ops->dequeue_burst = real;
  bench.run(cases);
  EXPECT_EQ(counter(**queue, "queue_done"), 0u);
  EXPECT_EQ(counter(**queue, "dequeued_count"), 0u);
}

// {thread id: the CPUs it may use}
std::map<std::string, std::string> affinities() {
  std::map<std::string, std::string> all;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) {
    std::ifstream status(std::string("/proc/self/task/") + entry->d_name + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("Cpus_allowed:", 0) == 0) all[entry->d_name] = line;
  }
  closedir(folder);
  return all;
}

TEST(cryptodev, leaves_the_affinity_of_threads_alone) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  OPEN_OR_SKIP(device, {Cipher::aes_256_gcm, "auto"});
  ASSERT_TRUE(device);
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  const auto all = affinities();
  for (const auto& [id, cpus] : all) EXPECT_EQ(cpus, all.begin()->second) << "thread " << id;
}

// In a process of its own, as DPDK starts once in one, with a folder of its own for what is temporary.
TEST(cryptodev, leaves_no_folder_behind) {
  char place[] = "/tmp/fsbl-test-XXXXXX";
  ASSERT_NE(mkdtemp(place), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TMPDIR", place, 1);
    execl("/proc/self/exe", "cryptodev_test", "--gtest_filter=cryptodev.leaves_the_affinity_of_threads_alone", nullptr);
    _exit(1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(place));
  for (const char* folder : {"/tmp/dpdk", "/run/dpdk"})   // where DPDK itself would make one
    EXPECT_FALSE(std::filesystem::exists(fmt::format("{}/fsbl-{}", folder, child))) << folder;
  std::filesystem::remove_all(place);
}

}  // namespace
}  // namespace fsbl
