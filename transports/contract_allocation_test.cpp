// No heap allocation per operation: every allocation of this thread is counted, OpenSSL's apart from ours. The other
// tests of this program run with the counting operator new too; they don't notice.
#include <openssl/crypto.h>

#include <cstdlib>
#include <new>

#include "transports/contract_text.h"

namespace {

struct Allocations {
  uint64_t ours = 0, openssl = 0;
};
thread_local Allocations allocations;

// Before main(): OpenSSL refuses once it has allocated anything.
const bool openssl_counted = CRYPTO_set_mem_functions(
    [](size_t size, const char*, int) { return ++allocations.openssl, std::malloc(size); },
    [](void* old, size_t size, const char*, int) { return ++allocations.openssl, std::realloc(old, size); },
    [](void* memory, const char*, int) { std::free(memory); });

}  // namespace

// Not inlined: the compiler would see a free() of what came from a new.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations.ours;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fsbl::contract {
namespace {

constexpr uint32_t kFlows = 3;

// Bare drivers without a log, so that what is counted is theirs.
struct Wire {
  Driver& client;
  Driver& server;
  uint64_t received[2] = {};
  bool lent[kFlows] = {}, died = false;

  void turn(Role role) {
    Driver& driver = role == Role::client ? client : server;
    Event events[16];
    const size_t n = driver.poll(events, mono_now_ns());
    for (size_t i = 0; i < n; ++i) {
      if (events[i].kind == EventKind::readable) {
        for (const auto piece : driver.peek(events[i].flow)) received[of(role)] += piece.size();
      } else if (events[i].kind == EventKind::sent) {
        lent[events[i].flow] = false;
      } else {
        died = true;
      }
    }
  }
  // What OpenSSL 3.0 allocates by its own: SSL_write() three blocks a record (its WPACKET, a sub-packet of it, and one
  // for the additional data), SSL_read() one. The library's price, and part of what engine `openssl` is measured for.
  uint64_t price_of_openssl() const {
    uint64_t sum = 0;
    for (FlowId id = 0; id < kFlows; ++id)
      for (const FlowReport& report : {client.report(id), server.report(id)}) sum += 3 * report.records_out + report.records_in;
    return sum;
  }
};

class Allocation : public testing::TestWithParam<Composition> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
    ASSERT_TRUE(openssl_counted);
    config.transport = GetParam();
  }

  // Runs `work` to warm up, then again under the count.
  void expect_none(Wire& wire, const std::function<void()>& work) {
    work();
    const uint64_t price_before = wire.price_of_openssl();
    const Allocations before = allocations;
    work();
    const Allocations after = allocations;
    EXPECT_FALSE(wire.died);
    EXPECT_EQ(after.ours - before.ours, 0u);
    const uint64_t price = wire.price_of_openssl() - price_before;
    const uint64_t halves = 2 * kFlows;  // records whose header was counted and whose rest was not there yet
    EXPECT_LE(after.openssl - before.openssl, GetParam().engine == "openssl" ? price + halves : 0);
  }

  CellConfig config;
  const Text text;
};

TEST_P(Allocation, ARequestAndItsReplyCostNone) {
  Pair pair(config, "127.0.0.1");
  ASSERT_TRUE(pair.connect(kFlows));
  some_turns({&pair.client, &pair.server});
  Wire wire{pair.client.driver(), pair.server.driver()};
  const auto request = text.at(0, Role::client, 0, 40'000), reply = text.at(0, Role::server, 0, 64);
  expect_none(wire, [&] {
    for (int i = 0; i < 200 && !wire.died; ++i) {
      wire.received[0] = wire.received[1] = 0;
      for (FlowId id = 0; id < kFlows; ++id) wire.client.submit(id, request);
      while (!wire.died && wire.received[1] < kFlows * request.size()) wire.turn(Role::server), wire.turn(Role::client);
      for (FlowId id = 0; id < kFlows; ++id) wire.server.submit(id, reply);
      while (!wire.died && wire.received[0] < kFlows * reply.size()) wire.turn(Role::client), wire.turn(Role::server);
    }
  });
}

TEST_P(Allocation, AStreamCostsNone) {
  for (WaitMode wait : {WaitMode::block, WaitMode::busy}) {
    config.load.wait = wait;
    Pair pair(config, "127.0.0.1");
    ASSERT_TRUE(pair.connect(kFlows));
    some_turns({&pair.client, &pair.server});
    Wire wire{pair.client.driver(), pair.server.driver()};
    const auto piece = text.at(0, Role::client, 0, 256 << 10);
    uint64_t pending = 0;
    expect_none(wire, [&] {
      wire.received[1] = 0;
      while (!wire.died && wire.received[1] < 100 << 20) {
        for (FlowId id = 0; id < kFlows; ++id)  // fill the kernel's buffers
          while (!wire.lent[id]) pending += wire.lent[id] = wire.client.submit(id, piece) != Submit::sent;
        for (int i = 0; i < 20; ++i) wire.turn(Role::server);
        wire.turn(Role::client);
      }
    });
    EXPECT_GT(pending, 0u);
  }
}

TEST(Allocation, IsCounted) {
  const Allocations before = allocations;
  operator delete(operator new(1));
  OPENSSL_free(OPENSSL_malloc(1));
  EXPECT_EQ(allocations.ours, before.ours + 1);
  EXPECT_EQ(allocations.openssl, before.openssl + 1);
}

INSTANTIATE_TEST_SUITE_P(All, Allocation, testing::ValuesIn(compositions()),
                         [](const auto& info) { return test_name(info.param.name); });

}  // namespace
}  // namespace fsbl::contract
