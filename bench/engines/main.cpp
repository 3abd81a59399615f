// fsbl-bench-engines: what sealing and opening TLS records costs on one core, per back end, cipher, size and burst.
//
//   seal/cryptodev:crypto_aesni_gcm/aes-256-gcm/16384/burst:32    32 records of 16 384 bytes of plaintext at a time
//   seal/openssl-evp/aes-256-gcm/write:65536                      a write of 64 KiB: four records at a time
//
// bytes_per_second counts plaintext. tsc_cycles_per_byte counts the time stamp counter's cycles, which run at the
// nominal frequency and not at the core's. Memory: every record of a seal reads the same plaintext, the records are a
// ring of at most 512 KiB (burst 32 of 16 KiB: 526 KiB), all in a 1 MiB L2 cache, as in a worker. An open works on
// records that the same back end sealed just before, which is not timed.
//
// Compare two back ends only within one run with --benchmark_enable_random_interleaving=true and repetitions.
// A back end whose records differ from OpenSSL's, or fail to open, ends the program with exit code 5.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "bench/engines/backend.h"
#include "harness/core/clock.h"

namespace fsbl::bench {
namespace {

constexpr size_t kRingBytes = 512 << 10;
constexpr size_t kMaxRecords = 256;

const char* cipher_text(Cipher cipher) {
  switch (cipher) {
    case Cipher::aes_128_gcm: return "aes-128-gcm";
    case Cipher::aes_256_gcm: return "aes-256-gcm";
    case Cipher::chacha20_poly1305: return "chacha20-poly1305";
  }
  return "?";
}

[[noreturn]] void die(int code, const std::string& text) {
  std::fprintf(stderr, "fsbl-bench-engines: %s\n", text.c_str());
  std::exit(code);
}

uint64_t tsc() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

std::vector<std::byte> random_bytes(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(n);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

// Bursts of records in a ring, all of one size.
class Ring {
 public:
  Ring(size_t bytes, size_t burst) : bytes_(bytes), burst_(burst), plain_(random_bytes(bytes + 1, bytes)) {
    const size_t record = kRecordHeaderBytes + bytes + 1 + kTagBytes;
    stride_ = (record + 63) / 64 * 64 + 64;   // not all at one place of the cache
    const size_t bursts = std::clamp<size_t>(std::min(kMaxRecords, kRingBytes / stride_) / burst, 1, kMaxRecords);
    memory_.resize(bursts * burst * stride_);
    jobs_.resize(bursts * burst);
    plain_.back() = std::byte{23};
    for (size_t i = 0; i < jobs_.size(); ++i) {
      RecordJob& job = jobs_[i];
      job.record = &memory_[i * stride_];
      const size_t length = record - kRecordHeaderBytes;
      const uint8_t header[] = {23, 3, 3, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
      std::memcpy(job.record, header, sizeof header);
      const auto nonce = random_bytes(kNonceBytes, i);
      std::copy(nonce.begin(), nonce.end(), job.nonce.begin());
      job.plain = plain_.data();
      job.type = 23;
    }
  }
  bool seal(Backend& backend) {
    for (RecordJob& job : jobs_) job.bytes = static_cast<uint32_t>(bytes_);
    return each([&](auto burst) { return backend.seal(burst); });
  }
  bool open(Backend& backend) {
    return each([&](auto burst) { return backend.open(burst); });
  }
  void before_open() {
    for (RecordJob& job : jobs_) job.bytes = static_cast<uint32_t>(bytes_ + 1 + kTagBytes);
  }
  bool opened_right() const {
    return std::ranges::all_of(jobs_, [&](const RecordJob& job) {
      return std::memcmp(job.record + kRecordHeaderBytes, plain_.data(), plain_.size()) == 0;
    });
  }
  const std::vector<std::byte>& memory() const { return memory_; }
  size_t records() const { return jobs_.size(); }

 private:
  template <class Step>
  bool each(Step&& step) {
    bool ok = true;
    for (size_t i = 0; i < jobs_.size(); i += burst_) ok &= step(std::span(jobs_).subspan(i, burst_));
    return ok;
  }

  size_t bytes_, burst_, stride_ = 0;
  std::vector<std::byte> plain_, memory_;
  std::vector<RecordJob> jobs_;
};

// The back ends of the program, made when first used (DPDK takes a while to start) and kept.
class Backends {
 public:
  Backend& get(const BackendKind& kind, Cipher cipher) {
    auto& backend = made_[{kind.name, cipher}];
    if (!backend) {
      auto made = kind.make(kind.name, cipher, random_bytes(key_bytes(cipher), 7));
      if (!made) die(5, made.error().message());
      backend = std::move(*made);
    }
    return *backend;
  }
  // Whether this host has it; says on standard error why not.
  bool has(const BackendKind& kind, Cipher cipher) {
    auto made = kind.make(kind.name, cipher, random_bytes(key_bytes(cipher), 7));
    if (made) made_[{kind.name, cipher}] = std::move(*made);
    else std::fprintf(stderr, "SKIP %s/%s: %s\n", kind.name.c_str(), cipher_text(cipher),
                      made.error().message().c_str());
    return made.has_value();
  }

 private:
  std::map<std::pair<std::string, Cipher>, std::unique_ptr<Backend>> made_;
};

struct Case {
  BackendKind kind;
  Cipher cipher;
  size_t bytes, burst;
  KeyUse use;
  std::string name;
};

void check(const Case& one, Backend& backend, Backend& openssl, Ring& ring) {
  if (!backend.is_cipher()) return;
  Ring expected(one.bytes, one.burst);
  if (!ring.seal(backend) || !expected.seal(openssl) || ring.memory() != expected.memory())
    die(5, one.name + ": its records are not OpenSSL's");
  ring.before_open();
  if (!ring.open(backend) || !ring.opened_right()) die(5, one.name + ": opens its records wrongly");
}

void run(benchmark::State& state, const Case& one, Backend& backend, Backend& openssl) {
  Ring ring(one.bytes, one.burst);
  check(one, backend, openssl, ring);
  uint64_t cycles = 0;
  bool ok = ring.seal(backend);
  for (auto turn : state) {
    (void)turn;
    if (one.use == KeyUse::open) {
      ok &= ring.seal(backend);
      ring.before_open();
    }
    const Nanos begin = mono_now_ns();
    const uint64_t tick = tsc();
    ok &= one.use == KeyUse::seal ? ring.seal(backend) : ring.open(backend);
    cycles += tsc() - tick;
    state.SetIterationTime(static_cast<double>(mono_now_ns() - begin) * 1e-9);
    if (!ok) die(5, one.name + ": a record failed");
  }
  const auto bytes = static_cast<double>(state.iterations()) * static_cast<double>(ring.records() * one.bytes);
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.SetItemsProcessed(static_cast<int64_t>(static_cast<size_t>(state.iterations()) * ring.records()));
#if defined(__x86_64__)
  state.counters["tsc_cycles_per_byte"] = static_cast<double>(cycles) / bytes;
#else
  (void)cycles;
  state.SetLabel("cycles MISSING: no time stamp counter on this architecture");
#endif
}

std::vector<Case> cases_of(const BackendKind& kind, Cipher cipher, bool is_cipher) {
  std::vector<Case> cases;
  for (const KeyUse use : {KeyUse::seal, KeyUse::open}) {
    if (use == KeyUse::open && !is_cipher) continue;
    const std::string prefix = fmt::format("{}/{}/{}", use == KeyUse::seal ? "seal" : "open", kind.name,
                                           is_cipher ? cipher_text(cipher) : "none");
    for (const size_t bytes : {64, 256, 1024, 1420, 4096, 16384})
      for (const size_t burst : {1, 8, 32})
        cases.push_back({kind, cipher, bytes, burst, use, fmt::format("{}/{}/burst:{}", prefix, bytes, burst)});
    cases.push_back({kind, cipher, kMaxPlainBytes, 4, use, prefix + "/write:65536"});
  }
  return cases;
}

}  // namespace
}  // namespace fsbl::bench

int main(int argc, char** argv) {
  using namespace fsbl;
  using namespace fsbl::bench;
  // 0.1 s a benchmark unless the command line says otherwise: there are several hundred.
  std::vector<std::string> given(argv, argv + argc);
  given.insert(given.begin() + 1, "--benchmark_min_time=0.1");
  std::vector<char*> args;
  for (std::string& arg : given) args.push_back(arg.data());
  int count = static_cast<int>(args.size());
  args.push_back(nullptr);
  benchmark::Initialize(&count, args.data());
  if (benchmark::ReportUnrecognizedArguments(count, args.data())) return 2;

  Backends backends, reference;
  const std::vector<BackendKind> kinds = backend_kinds();
  const BackendKind& openssl = kinds.front();
  for (const BackendKind& kind : kinds)
    for (const Cipher cipher : kind.ciphers) {
      if (!backends.has(kind, cipher)) continue;
      Backend& backend = backends.get(kind, cipher);
      Backend& checks = reference.get(openssl, cipher);
      for (const Case& one : cases_of(kind, cipher, backend.is_cipher()))
        benchmark::RegisterBenchmark(one.name.c_str(), [one, &backend, &checks](benchmark::State& state) {
          run(state, one, backend, checks);
        })->UseManualTime();
    }
  const size_t ran = benchmark::RunSpecifiedBenchmarks();
  benchmark::ClearRegisteredBenchmarks();
  benchmark::Shutdown();
  return ran > 0 ? 0 : 2;
}
