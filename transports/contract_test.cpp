// What every session and record engine owes its user (harness/transport/driver.h), over every composition of the
// registry, both address families and both wait modes. One thread turns both ends, but where waiting is the point.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "harness/core/fd.h"
#include "transports/contract_text.h"

namespace fsbl::contract {
namespace {

struct Case {
  Composition composition;
  const char* address;
  WaitMode wait;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.composition.name << ' ' << c.address; }

// Both wait modes and both address families; what the two have in common with each other is little.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Composition& composition : compositions()) {
    all.push_back({composition, "127.0.0.1", WaitMode::block});
    all.push_back({composition, "::1", WaitMode::busy});
  }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return test_name(info.param.composition.name + (info.param.address[0] == ':' ? "_v6_" : "_v4_") +
                   std::string(to_text(info.param.wait)));
}

// A loopback port on which nobody listens, or nothing when the host lacks the address.
std::optional<uint16_t> closed_port(const std::string& address) {
  const bool v6 = address.find(':') != std::string::npos;
  const UniqueFd fd(socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage storage{};
  storage.ss_family = v6 ? AF_INET6 : AF_INET;
  socklen_t size = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (v6) inet_pton(AF_INET6, address.c_str(), &reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr);
  else inet_pton(AF_INET, address.c_str(), &reinterpret_cast<sockaddr_in*>(&storage)->sin_addr);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0) return std::nullopt;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&storage), &size);
  return ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

class Contract : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam().composition); !why.empty()) GTEST_SKIP() << why;
    if (!closed_port(GetParam().address)) GTEST_SKIP() << "this host has no " << GetParam().address;
    config.transport = GetParam().composition;
    config.load.wait = GetParam().wait;
  }
  bool has_records() const { return find_session(GetParam().composition.session)->has_records; }

  // Submits until the kernel takes no more; the buffer that is then lent.
  std::vector<std::byte> fill(End& end, FlowId flow, Role role, uint64_t& position) {
    for (;;) {
      const auto piece = text.at(flow, role, position, 300'000);
      std::vector<std::byte> buffer(piece.begin(), piece.end());
      const Submit submitted = end.driver().submit(flow, buffer);
      position += buffer.size();
      if (submitted != Submit::sent) {
        EXPECT_EQ(submitted, Submit::pending);
        return buffer;
      }
    }
  }

  CellConfig config;
  const Text text;
};

TEST_P(Contract, EveryFlowIsEstablishedOnceOnBothSides) {
  for (uint32_t flows : {1u, 10u, 300u}) {
    Pair pair(config, GetParam().address);
    ASSERT_TRUE(pair.connect(flows));
    some_turns({&pair.client, &pair.server});
    for (End* end : {&pair.client, &pair.server}) {
      EXPECT_EQ(end->driver().flows(), flows);
      EXPECT_EQ(end->count([](const FlowLog& log) {
        return log.established == 1 && log.sent + log.closed + log.error == 0 && log.received.empty();
      }), flows);
      EXPECT_EQ(end->driver().failure(flows - 1), "");
      EXPECT_TRUE(end->driver().refusal(flows - 1).is_null());
      EXPECT_EQ(end->driver().report(0).handshake.is_null(), !has_records());
    }
  }
}

TEST_P(Contract, FlowsMayBeOpenedOneAfterTheOther) {
  Pair pair(config, GetParam().address);
  const uint16_t port = pair.server.driver().listen(3, 0).value();
  for (uint32_t flows : {1u, 3u}) {
    ASSERT_TRUE(pair.client.driver().open(flows - pair.client.driver().flows(), port));
    ASSERT_TRUE(until({&pair.client, &pair.server},
                      [&] { return pair.client.established() == flows && pair.server.established() == flows; }));
  }
}

TEST_P(Contract, BytesOfAnySizeArriveInOrderBothWaysAtOnce) {
  struct { uint32_t flows; uint64_t total; } const loads[] = {{1, 6 << 20}, {10, 1 << 20}, {300, 50'000}};
  for (const auto& load : loads) {
    Pair pair(config, GetParam().address);
    ASSERT_TRUE(pair.connect(load.flows));
    Sender up(pair.client, Role::client, text, load.flows, load.total, 1);
    Sender down(pair.server, Role::server, text, load.flows, load.total, 2);
    const auto all = [&](const FlowLog& log) { return log.received.size() >= load.total; };
    ASSERT_TRUE(until({&pair.client, &pair.server},
                      [&] { return up.done() && down.done() && pair.client.count(all) == load.flows &&
                                   pair.server.count(all) == load.flows; },
                      [&] { up.push(), down.push(); }));
    for (Sender* sender : {&up, &down}) {
      EXPECT_EQ(sender->unexpected_sent(), 0u);
      EXPECT_EQ(sender->dead(), 0u);
    }
    for (FlowId id = 0; id < load.flows; ++id) {
      // Accept order need not be connect order: a server's flow is known by what it received.
      EXPECT_EQ(pair.server[id].received.size(), load.total);
      EXPECT_EQ(pair.client[id].received.size(), load.total);
      FlowId sent_by = 0, sent_to = 0;
      while (sent_by < load.flows && !text.difference(sent_by, Role::client, pair.server[id].received).empty()) ++sent_by;
      while (sent_to < load.flows && !text.difference(sent_to, Role::server, pair.client[id].received).empty()) ++sent_to;
      EXPECT_LT(sent_by, load.flows) << text.difference(id, Role::client, pair.server[id].received);
      EXPECT_LT(sent_to, load.flows) << text.difference(id, Role::server, pair.client[id].received);
    }
    const WireOffsets client = pair.client.driver().wire(0);
    if (load.flows == 1) {
      const WireOffsets server = pair.server.driver().wire(0);
      EXPECT_EQ(client.out, server.in);
      EXPECT_EQ(client.in, server.out);
    }
    if (has_records()) EXPECT_GT(client.out, load.total);
    else EXPECT_EQ(client.out, load.total);
  }
}

TEST_P(Contract, ABufferIsLentUntilItsSentEvent) {
  for (Role role : kRoles) {
    Pair pair(config, GetParam().address);
    ASSERT_TRUE(pair.connect(1));
    End& sender = role == Role::client ? pair.client : pair.server;
    End& receiver = role == Role::client ? pair.server : pair.client;
    receiver.reading = false;
    uint64_t total = 0;
    std::vector<std::byte> lent = fill(sender, 0, role, total);
    some_turns({&sender});  // the receiver's kernel buffer is full: nothing can be free
    EXPECT_EQ(sender[0].sent, 0u);
    receiver.reading = true;
    ASSERT_TRUE(until({&sender, &receiver}, [&] { return sender[0].sent == 1; }));
    std::fill(lent.begin(), lent.end(), std::byte{0xee});
    ASSERT_TRUE(until({&sender, &receiver}, [&] { return receiver[0].received.size() >= total; }));
    EXPECT_EQ(receiver[0].received.size(), total);
    EXPECT_EQ(text.difference(0, role, receiver[0].received), "");
    EXPECT_EQ(sender[0].sent, 1u);
  }
}

TEST_P(Contract, ReadableIsAnnouncedAgainWhileBytesRemain) {
  Pair pair(config, GetParam().address);
  ASSERT_TRUE(pair.connect(1));
  pair.server.reading = false;
  uint64_t total = 0;
  const std::vector<std::byte> lent = fill(pair.client, 0, Role::client, total);
  ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return pair.server[0].readable >= 5; }));
  // One peek at each announcement, however little it yields, must come to the end of it.
  while (pair.server[0].received.size() < total) {
    const unsigned before = pair.server[0].readable;
    ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return pair.server[0].readable > before; }))
        << pair.server[0].received.size() << " of " << total;
    pair.server.read(0);
  }
  EXPECT_EQ(pair.server[0].received.size(), total);
  EXPECT_EQ(text.difference(0, Role::client, pair.server[0].received), "");
  EXPECT_TRUE(pair.server.driver().peek(0).empty());
}

TEST_P(Contract, AFlowThatIsNotReadStarvesNoOther) {
  Pair pair(config, GetParam().address);
  ASSERT_TRUE(pair.connect(70));  // more than one poll can name
  pair.server.reading = false;
  for (FlowId id = 0; id < 69; ++id) ASSERT_NE(pair.client.driver().submit(id, text.at(id, Role::client, 0, 100)), Submit::dead);
  ASSERT_TRUE(until({&pair.client, &pair.server},
                    [&] { return pair.server.count([](const FlowLog& log) { return log.readable >= 3; }) >= 69; }));
  std::vector<unsigned> before;
  for (FlowId id = 0; id < 70; ++id) before.push_back(pair.server[id].readable);
  ASSERT_NE(pair.client.driver().submit(69, text.at(69, Role::client, 0, 100)), Submit::dead);
  ASSERT_TRUE(until({&pair.client, &pair.server}, [&] {
    for (FlowId id = 0; id < 70; ++id)
      if (pair.server[id].readable == before[id]) return false;
    return true;
  }));
}

TEST_P(Contract, PeekWithoutDataIsEmpty) {
  Pair pair(config, GetParam().address);
  ASSERT_TRUE(pair.connect(2));
  for (End* end : {&pair.client, &pair.server}) EXPECT_TRUE(end->driver().peek(1).empty());
  const auto hello = text.at(1, Role::client, 0, 5000);
  ASSERT_NE(pair.client.driver().submit(1, hello), Submit::dead);
  ASSERT_TRUE(until({&pair.client, &pair.server},
                    [&] { return pair.server[0].received.size() + pair.server[1].received.size() == 5000; }));
  for (End* end : {&pair.client, &pair.server})
    for (FlowId id : {0u, 1u}) EXPECT_TRUE(end->driver().peek(id).empty());
  some_turns({&pair.client, &pair.server});
  EXPECT_EQ(pair.client.count([](const FlowLog& log) { return log.error + log.closed > 0; }), 0u);
  EXPECT_EQ(pair.server.count([](const FlowLog& log) { return log.error + log.closed > 0; }), 0u);
}

TEST_P(Contract, FinishClosesAfterEverythingThatWasSubmitted) {
  for (Role role : kRoles) {
    Pair pair(config, GetParam().address);
    ASSERT_TRUE(pair.connect(1));
    End& first = role == Role::client ? pair.client : pair.server;
    End& second = role == Role::client ? pair.server : pair.client;
    second.reading = false;
    uint64_t total = 0;
    std::vector<std::byte> lent = fill(first, 0, role, total);
    first.driver().finish(0);
    EXPECT_EQ(first.driver().submit(0, text.at(0, role, 0, 10)), Submit::dead);
    some_turns({&first, &second});
    EXPECT_EQ(second[0].closed, 0u);
    second.reading = true;
    ASSERT_TRUE(until({&first, &second}, [&] { return second[0].closed == 1; }));
    EXPECT_EQ(first[0].sent, 1u) << "the buffer was lent and never given back";
    EXPECT_EQ(second[0].received.size(), total);
    EXPECT_EQ(text.difference(0, role, second[0].received), "");

    // The other direction is still open.
    ASSERT_EQ(second.driver().submit(0, text.at(0, role, 0, 100'000)), Submit::sent);
    second.driver().finish(0);
    ASSERT_TRUE(until({&first, &second}, [&] { return first[0].closed == 1; }));
    EXPECT_EQ(first[0].received.size(), 100'000u);
    some_turns({&first, &second});
    for (End* end : {&first, &second}) {
      EXPECT_EQ((*end)[0].closed, 1u);
      EXPECT_EQ((*end)[0].error, 0u) << end->driver().failure(0);
      EXPECT_TRUE(end->driver().peek(0).empty());
    }
  }
}

TEST_P(Contract, EndOfFileSeenByAnEarlyPeekIsStillReported) {
  Pair pair(config, GetParam().address);
  ASSERT_TRUE(pair.connect(2));
  some_turns({&pair.client, &pair.server});
  pair.client.driver().finish(0);
  pair.client.driver().finish(1);
  const Nanos limit = mono_now_ns() + kHangLimit;
  char byte;
  for (FlowId id : {0u, 1u}) {
    while (recv(pair.server.driver().socket(id), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && mono_now_ns() < limit) {}
    pair.server.read(id);
  }
  EXPECT_TRUE(until({&pair.server}, [&] { return pair.server[0].closed == 1 && pair.server[1].closed == 1; }));
}

TEST_P(Contract, APeerThatDiesIsAnErrorWithAText) {
  for (Role role : kRoles) {
    Pair pair(config, GetParam().address);
    ASSERT_TRUE(pair.connect(2));
    End& dying = role == Role::client ? pair.client : pair.server;
    End& left = role == Role::client ? pair.server : pair.client;
    some_turns({&dying, &left});
    const linger reset{1, 0};
    for (FlowId id : {0u, 1u}) setsockopt(dying.driver().socket(id), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    dying.kill();
    ASSERT_TRUE(until({&left}, [&] { return left[0].error == 1 && left[1].error == 1; }));
    some_turns({&left});
    for (FlowId id : {0u, 1u}) {
      EXPECT_NE(left.driver().failure(id).find("ECONNRESET"), std::string::npos) << left.driver().failure(id);
      EXPECT_EQ(left.driver().submit(id, text.at(0, role, 0, 10)), Submit::dead);
      EXPECT_TRUE(left.driver().peek(id).empty());
      EXPECT_EQ(left[id].error, 1u);
      EXPECT_TRUE(left.driver().refusal(id).is_null()) << left.driver().refusal(id);
      left.driver().finish(id);
    }
  }
}

TEST_P(Contract, ADeadPeerEndsAPendingSubmit) {
  Pair pair(config, GetParam().address);
  ASSERT_TRUE(pair.connect(1));
  pair.server.reading = false;
  uint64_t total = 0;
  const std::vector<std::byte> lent = fill(pair.client, 0, Role::client, total);
  pair.server.kill();
  ASSERT_TRUE(until({&pair.client}, [&] { return pair.client[0].error == 1; }));
  EXPECT_NE(pair.client.driver().failure(0), "");
}

TEST_P(Contract, ARefusedConnectionIsAnErrorWithAText) {
  Pair pair(config, GetParam().address);
  ASSERT_TRUE(pair.client.driver().open(2, *closed_port(GetParam().address)));
  ASSERT_TRUE(until({&pair.client}, [&] { return pair.client[0].error == 1 && pair.client[1].error == 1; }));
  EXPECT_EQ(pair.client.driver().failure(1), "connect: ECONNREFUSED: Connection refused");
  EXPECT_TRUE(pair.client.driver().refusal(1).is_null());
  EXPECT_EQ(pair.client.established(), 0u);
}

TEST_P(Contract, ALaterConnectionThanExpectedIsNotTaken) {
  Pair pair(config, GetParam().address);
  ASSERT_TRUE(pair.connect(1));
  ASSERT_TRUE(pair.client.driver().open(1, pair.port));
  ASSERT_TRUE(until({&pair.client, &pair.server}, [&] { return pair.client[1].error == 1; }));
  EXPECT_EQ(pair.server.driver().flows(), 1u);
}

TEST_P(Contract, PollReturnsNothingOnlyAfterItsDeadline) {
  for (uint32_t flows : {1u, 3u}) {
    Pair pair(config, GetParam().address);
    ASSERT_TRUE(pair.connect(flows));
    some_turns({&pair.client, &pair.server});
    Event events[8];
    for (Nanos wait : {Nanos{-1}, Nanos{0}, Nanos{3'000'000}, Nanos{70'000'000}, Nanos{120'000'000}})
      for (End* end : {&pair.client, &pair.server}) {
        const Nanos deadline = mono_now_ns() + wait;
        EXPECT_EQ(end->driver().poll(events, deadline), 0u);
        EXPECT_GE(mono_now_ns(), deadline);
      }
  }
}

TEST_P(Contract, AWaitingPollIsWokenByData) {
  // Two threads, one ball: with long deadlines only an arrival can end a wait.
  constexpr int kTurns = 200;
  for (uint32_t flows : {1u, 2u}) {
    Pair pair(config, GetParam().address);
    ASSERT_TRUE(pair.connect(flows));
    some_turns({&pair.client, &pair.server});
    const auto play = [](Driver& driver, bool serves) {
      std::byte ball[100] = {};
      Event events[8];
      bool lent = false;  // a buffer goes on its way at the latest in the next poll()
      if (serves) lent = driver.submit(0, ball) == Submit::pending;
      size_t bytes = 0;
      while (bytes < kTurns * sizeof ball) {
        const size_t n = driver.poll(events, mono_now_ns() + kHangLimit);
        if (n == 0) break;
        for (size_t i = 0; i < n; ++i) {
          if (events[i].kind == EventKind::sent) lent = false;
          if (events[i].kind != EventKind::readable) continue;
          size_t got = 0;
          for (const auto piece : driver.peek(events[i].flow)) got += piece.size();
          bytes += got;
          const bool whole = got > 0 && bytes % sizeof ball == 0;
          if (whole && (!serves || bytes < kTurns * sizeof ball)) lent = driver.submit(events[i].flow, ball) == Submit::pending;
        }
      }
      while (lent && driver.poll(events, mono_now_ns() + kHangLimit) > 0) lent = events[0].kind != EventKind::sent;
      return static_cast<int>(bytes / sizeof ball);
    };
    std::atomic<int> returned = 0;
    std::thread server([&] { returned = play(pair.server.driver(), false); });
    EXPECT_EQ(play(pair.client.driver(), true), kTurns);
    server.join();
    EXPECT_EQ(returned, kTurns);
  }
}

TEST_P(Contract, ListenAndOpenNameWhatIsWrong) {
  Pair pair(config, GetParam().address);
  const uint16_t taken = pair.server.driver().listen(1, 0).value();
  const auto second = make_driver(config, Role::server, GetParam().address, pair.secrets[1])->listen(1, taken);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("EADDRINUSE"), std::string::npos) << second.error().message();
  const auto nowhere = make_driver(config, Role::server, "no address", pair.secrets[1])->listen(1, 0);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message().find("'no address'"), std::string::npos);
  EXPECT_FALSE(make_driver(config, Role::client, "203.0.113.1.5", pair.secrets[0])->open(1, 80));
}

INSTANTIATE_TEST_SUITE_P(All, Contract, testing::ValuesIn(cases()), case_name);

TEST(Contract, CoversEverySessionAndEngine) {
  size_t with_records = 0, without = 0;
  for (const SessionDescriptor* session : sessions())
    if (!session->in_process) ++(session->has_records ? with_records : without);
  EXPECT_EQ(compositions().size(), without + with_records * engines().size());
  EXPECT_GE(compositions().size(), 2u);
}

}  // namespace
}  // namespace fsbl::contract
