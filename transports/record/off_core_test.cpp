// A cipher back end on a core of its own: the same answers as on the load thread, in whatever order it is
// used. Runs under ThreadSanitizer, too.
#include "transports/record/off_core.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <deque>
#include <thread>

#include "transports/record/record_pair_for_test.h"

namespace fsbl::records {
namespace {

int a_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  int cpu = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<size_t>(i), &cpus)) cpu = i;
  return cpu;
}

std::unique_ptr<Aead> start(Cipher cipher) {
  auto aead =
      OffCoreAead::start(a_cpu(), [cipher] { return Expected<std::unique_ptr<Aead>>(make_evp(cipher)); });
  EXPECT_TRUE(aead) << aead.error().message();
  return aead ? std::move(*aead) : nullptr;
}

// A burst of records of one size, to be sealed by one back end and opened by the same.
struct Burst {
  std::vector<Blob> plain, records;
  std::vector<RecordJob> jobs;

  Burst(std::mt19937_64& random, size_t count, size_t most) {
    for (size_t i = 0; i < count; ++i) {
      plain.push_back(random_blob(random, 1 + random() % most));
      const size_t behind = plain.back().size() + 1 + kTagBytes;
      records.push_back(blob({23, 3, 3, static_cast<int>(behind >> 8), static_cast<int>(behind & 255)}));
      records.back().resize(kRecordHeaderBytes + behind);
    }
  }
  std::span<RecordJob> seal(KeyHandle key) { return plan(key, KeyUse::seal); }
  std::span<RecordJob> open(KeyHandle key) { return plan(key, KeyUse::open); }
  bool done() const {
    return std::all_of(jobs.begin(), jobs.end(),
                       [](const RecordJob& job) { return job.state == JobState::done; });
  }
  bool opened() const {
    for (size_t i = 0; i < plain.size(); ++i)
      if (!std::equal(plain[i].begin(), plain[i].end(), records[i].begin() + kRecordHeaderBytes))
        return false;
    return done();
  }

 private:
  std::span<RecordJob> plan(KeyHandle key, KeyUse use) {
    jobs.assign(plain.size(), {});
    for (size_t i = 0; i < jobs.size(); ++i) {
      RecordJob& job = jobs[i];
      job.key = key;
      job.state = JobState::started;
      job.type = 23;
      job.bytes = static_cast<uint32_t>(use == KeyUse::seal ? plain[i].size()
                                                            : records[i].size() - kRecordHeaderBytes);
      job.plain = plain[i].data();
      job.record = records[i].data();
      job.nonce.back() = static_cast<std::byte>(i);
    }
    return jobs;
  }
};

class OffCore : public testing::TestWithParam<Cipher> {
 protected:
  Blob key() { return random_blob(random_, key_bytes(GetParam())); }
  KeyHandle add(Aead& aead, const Blob& bytes, KeyUse use) {
    const auto handle = aead.add_key(bytes, use);
    EXPECT_TRUE(handle);
    return handle ? *handle : 0;
  }
  std::mt19937_64 random_{45};
};
INSTANTIATE_TEST_SUITE_P(All, OffCore, testing::ValuesIn(kCiphers), cipher_name);

TEST_P(OffCore, PassesTheCheck) {
  const auto aead = start(GetParam());
  for (int i = 0; i < 3; ++i) {
    const auto good = check_aead(*aead, GetParam());
    EXPECT_TRUE(good) << good.error().message();
  }
}

TEST_P(OffCore, ThousandsOfBurstsOneAfterTheOther) {
  const auto aead = start(GetParam());
  const Blob bytes = key();
  const KeyHandle seals = add(*aead, bytes, KeyUse::seal), opens = add(*aead, bytes, KeyUse::open);
  Burst burst(random_, 4, 60);
  for (int i = 0; i < 5000; ++i) {
    auto jobs = burst.seal(seals);
    aead->start(jobs);
    aead->finish(jobs);
    ASSERT_TRUE(burst.done()) << i;
    jobs = burst.open(opens);
    aead->start(jobs);
    aead->finish(jobs);
    ASSERT_TRUE(burst.opened()) << i;
  }
}

TEST_P(OffCore, TwoBurstsUnderWayAllTheTime) {
  const auto aead = start(GetParam());
  const Blob bytes = key();
  const KeyHandle seals = add(*aead, bytes, KeyUse::seal), opens = add(*aead, bytes, KeyUse::open);
  Burst bursts[2] = {{random_, Aead::kBurst, 50}, {random_, Aead::kBurst, 50}};
  for (Burst& burst : bursts) aead->start(burst.seal(seals));
  for (int i = 0; i < 5000; ++i) {
    Burst& burst = bursts[i % 2];
    aead->finish(burst.jobs);
    const bool was_open = i / 2 % 2;
    ASSERT_TRUE(was_open ? burst.opened() : burst.done()) << i;
    aead->start(was_open ? burst.seal(seals) : burst.open(opens));
  }
  for (Burst& burst : bursts) aead->finish(burst.jobs);
  const auto counters = aead->counters();
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0].first, aead->record_counter());
  EXPECT_EQ(counters[0].second, 5002 * Aead::kBurst);
}

TEST_P(OffCore, ManySmallBurstsFinishedInAnyOrder) {
  const auto aead = start(GetParam());
  const Blob bytes = key();
  const KeyHandle seals = add(*aead, bytes, KeyUse::seal), opens = add(*aead, bytes, KeyUse::open);
  for (int turn = 0; turn < 40; ++turn) {
    std::deque<Burst> bursts;  // 2 * kBurst jobs, one a burst: more than are handed over at once
    for (size_t i = 0; i < 2 * Aead::kBurst; ++i)
      aead->start(bursts.emplace_back(random_, 1, 30).seal(seals));
    std::vector<size_t> order(bursts.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (size_t i : order) {
      aead->finish(bursts[i].jobs);
      ASSERT_TRUE(bursts[i].done());
      auto jobs = bursts[i].open(opens);  // while the others may still be under way
      aead->start(jobs);
      aead->finish(jobs);
      ASSERT_TRUE(bursts[i].opened());
    }
  }
}

struct Watch {
  std::atomic<int> together = 0;  // calls that found another thread inside
  std::atomic<int> starts = 0;
};

// An inner queue that notices when two threads are in it at once, and takes its time.
class Alone final : public Aead {
 public:
  Alone(Cipher cipher, Watch& watch) : inner_(make_evp(cipher)), watch_(watch) {}
  Expected<KeyHandle> add_key(std::span<const std::byte> key, KeyUse use) override {
    const Inside inside(*this);
    return inner_->add_key(key, use);
  }
  void drop_key(KeyHandle key) noexcept override {
    const Inside inside(*this);
    inner_->drop_key(key);
  }
  void start(std::span<RecordJob> jobs) noexcept override {
    const Inside inside(*this);
    ++watch_.starts;
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    inner_->start(jobs);
  }
  void finish(std::span<RecordJob> jobs) noexcept override {
    const Inside inside(*this);
    inner_->finish(jobs);
  }
  std::vector<std::pair<std::string, uint64_t>> counters() const override {
    const Inside inside(*this);
    return inner_->counters();
  }

 private:
  struct Inside {
    explicit Inside(const Alone& alone) : of(alone) { of.watch_.together += of.inside_++ > 0; }
    ~Inside() { --of.inside_; }
    const Alone& of;
  };
  std::unique_ptr<Aead> inner_;
  Watch& watch_;
  mutable std::atomic<int> inside_ = 0;
};

TEST_P(OffCore, KeysComeAndGoWhileOthersWork) {
  Watch watch;
  auto made = OffCoreAead::start(
      a_cpu(), [&] { return Expected<std::unique_ptr<Aead>>(std::make_unique<Alone>(GetParam(), watch)); });
  ASSERT_TRUE(made);
  Aead& aead = **made;
  const KeyHandle stays = add(aead, key(), KeyUse::seal);
  Burst busy(random_, Aead::kBurst, 2000), other(random_, 3, 500);
  const auto run = [&](std::span<RecordJob> jobs) {
    aead.start(jobs);
    aead.finish(jobs);
  };
  const auto work = [&] {  // under way when this returns
    const int before = watch.starts;
    aead.start(busy.seal(stays));
    while (watch.starts == before) std::this_thread::yield();
  };
  for (int i = 0; i < 200; ++i) {
    work();
    const Blob more = key();
    const KeyHandle seals = add(aead, more, KeyUse::seal), opens = add(aead, more, KeyUse::open);
    aead.finish(busy.jobs);
    run(other.seal(seals));
    run(other.open(opens));
    ASSERT_TRUE(other.opened()) << i;
    work();
    if (i % 2) {
      EXPECT_EQ(aead.counters().at(0).second, 70u * static_cast<uint64_t>(i + 1));
    }
    aead.drop_key(seals);
    aead.drop_key(opens);
    aead.finish(busy.jobs);
    ASSERT_TRUE(busy.done());
  }
  EXPECT_EQ(watch.together, 0);
}

TEST_P(OffCore, AWrongTagFailsAndTheRestDoesNot) {
  const auto aead = start(GetParam());
  const Blob bytes = key();
  const KeyHandle seals = add(*aead, bytes, KeyUse::seal), opens = add(*aead, bytes, KeyUse::open);
  Burst burst(random_, 8, 100);
  auto jobs = burst.seal(seals);
  aead->start(jobs);
  aead->finish(jobs);
  burst.records[3].back() ^= std::byte{1};
  jobs = burst.open(opens);
  aead->start(jobs);
  aead->finish(jobs);
  for (size_t i = 0; i < jobs.size(); ++i)
    EXPECT_EQ(jobs[i].state, i == 3 ? JobState::failed : JobState::done) << i;
}

TEST_P(OffCore, SleepsAndWakes) {
  const auto aead = start(GetParam());
  const KeyHandle seals = add(*aead, key(), KeyUse::seal);
  Burst burst(random_, 2, 100);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(i % 4));  // long enough, mostly, for it to fall asleep
    const auto jobs = burst.seal(seals);
    aead->start(jobs);
    aead->finish(jobs);
    ASSERT_TRUE(burst.done());
  }
}

TEST_P(OffCore, EndsWithWorkJustFinishedOrUnderWayOrNone) {
  Burst burst(random_, Aead::kBurst, 1000), second(random_, Aead::kBurst, 1000);
  for (int i = 0; i < 60; ++i) {
    const auto aead = start(GetParam());
    if (i % 3 == 0) continue;
    const KeyHandle seals = add(*aead, key(), KeyUse::seal);
    aead->start(burst.seal(seals));
    aead->start(second.seal(seals));
    if (i % 3 == 1) {
      aead->finish(burst.jobs);
      aead->finish(second.jobs);
    }
  }
  EXPECT_TRUE(burst.done() && second.done());  // the end waits for what was handed over
}

TEST_P(OffCore, CarriesARecordLayer) {
  RecordPair pair(GetParam());
  EngineConfig config;
  const CellConfig cell;
  config.cell = &cell;
  pair.client.engine.reset();
  pair.client.engines = std::make_unique<AeadEngines>(std::make_shared<NoDevice>(), start(GetParam()),
                                                      pair.suite, config, a_cpu());
  EXPECT_TRUE(pair.client.engines->overlaps());
  EXPECT_EQ(pair.client.engines->facts().at("core"), a_cpu());
  pair.client.engine = pair.add_flow(pair.client, Role::client);
  for (int i = 0; i < 20; ++i) {
    const Blob up = random_blob(random_, 1 + random_() % 100000),
               down = random_blob(random_, 1 + random_() % 100000);
    EXPECT_EQ(pair.server.open(pair.client.seal(up)).plain, up);
    EXPECT_EQ(pair.client.open(pair.server.seal(down)).plain, down);
  }
  Blob wire = pair.server_writes->seal(blob({1}));  // one that was never sealed with this number
  EXPECT_EQ(pair.client.open(wire).opened, Opened::failed);
}

TEST(OffCoreStart, SaysWhatToSetWhenThereIsNoSuchCpu) {
  for (int cpu : {-1, CPU_SETSIZE - 1, CPU_SETSIZE, 1 << 30}) {
    bool made = false;
    const auto aead = OffCoreAead::start(cpu, [&] {
      made = true;
      return Expected<std::unique_ptr<Aead>>(make_evp(Cipher::aes_128_gcm));
    });
    ASSERT_FALSE(aead) << cpu;
    EXPECT_FALSE(made);
    EXPECT_EQ(aead.error().kind, ErrorKind::bad_input);
    EXPECT_NE(aead.error().message().find("placement.crypto_client"), std::string::npos)
        << aead.error().message();
    EXPECT_NE(aead.error().message().find(std::to_string(cpu)), std::string::npos) << aead.error().message();
  }
}

TEST(OffCoreStart, PassesOnWhyThereIsNoQueue) {
  const auto aead = OffCoreAead::start(a_cpu(), []() -> Expected<std::unique_ptr<Aead>> {
    return unavailable("make a queue", "all are taken");
  });
  ASSERT_FALSE(aead);
  EXPECT_EQ(aead.error().message(), "make a queue: all are taken");
  EXPECT_EQ(aead.error().kind, ErrorKind::unavailable);
}

TEST(OffCoreStart, WorksOnTheCpuThatItWasGiven) {
  std::atomic<int> ran_on = -1;
  const auto aead = OffCoreAead::start(a_cpu(), [&] {
    ran_on = sched_getcpu();
    return Expected<std::unique_ptr<Aead>>(make_evp(Cipher::aes_128_gcm));
  });
  ASSERT_TRUE(aead);
  EXPECT_EQ(ran_on, a_cpu());
}

}  // namespace
}  // namespace fsbl::records
