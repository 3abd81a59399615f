// The record layer's data: every size and every way in which it may arrive, batches, sequence numbers,
// rekeying; against a second record layer and against an oracle that shares no code with it. What goes wrong
// is tested in record_layer_failure_test.cpp, handshake messages in record_layer_messages_test.cpp.
#include "transports/record/record_layer.h"

#include "transports/record/record_pair_for_test.h"

namespace fsbl::records {
namespace {

class RecordLayers : public testing::TestWithParam<Cipher> {
 protected:
  std::mt19937_64 random_{42};
};
INSTANTIATE_TEST_SUITE_P(All, RecordLayers, testing::ValuesIn(kCiphers), cipher_name);

// The records that `wire` is made of.
std::vector<Blob> split(const Blob& wire) {
  std::vector<Blob> all;
  for (auto at = wire.begin(); at != wire.end();) {
    const auto size =
        static_cast<ptrdiff_t>(5 + (static_cast<size_t>(at[3]) << 8 | static_cast<size_t>(at[4])));
    EXPECT_LE(size, wire.end() - at);
    all.emplace_back(at, at + size);
    at += size;
  }
  return all;
}

TEST_P(RecordLayers, CarryEverySizeBothWays) {
  RecordPair pair(GetParam());
  for (size_t size : {0, 1, 16383, 16384, 16385, 65536, 300000}) {
    for (bool up : {true, false}) {
      Side& from = up ? pair.client : pair.server;
      Side& to = up ? pair.server : pair.client;
      const Blob plain = random_blob(random_, size);
      const Blob wire = from.seal(plain);
      EXPECT_EQ(wire.size(), size + (size + 16383) / 16384 * (5 + 1 + 16));
      EXPECT_LE(wire.size(), RecordEngine::sealed_bound(size));
      Blob copy = wire;
      const Received got = to.open(copy);
      ASSERT_EQ(got.opened, Opened::ok) << to.engine->error();
      EXPECT_EQ(got.plain, plain) << size;
      EXPECT_EQ(got.taken, wire.size());
      EXPECT_TRUE(got.answer.empty());
    }
  }
  EXPECT_EQ(pair.client.engine->records_out(), pair.server.engine->records_in());
  EXPECT_EQ(pair.server.engine->records_out(), 1u + 1 + 1 + 2 + 4 + 19);
  EXPECT_EQ(pair.client.engine->records_in(), pair.server.engine->records_out());
}

TEST_P(RecordLayers, SealWhatTheOracleSeals) {
  RecordPair pair(GetParam());
  for (size_t size : {1, 2, 15, 16, 17, 1350, 16384}) {
    const Blob plain = random_blob(random_, size);
    EXPECT_EQ(pair.client.seal(plain), pair.client_writes->seal(plain)) << size;
    EXPECT_EQ(pair.server.seal(plain), pair.server_writes->seal(plain)) << size;
  }
}

TEST_P(RecordLayers, TakeOverTheSequenceNumbersOfTheHandshake) {
  PairOptions options;
  options.client_sent = 3;
  options.server_sent = 0x1'0000'0000;
  RecordPair pair(GetParam(), options);
  const Blob plain = random_blob(random_, 100);
  EXPECT_EQ(pair.client.seal(plain), pair.client_writes->seal(plain));
  EXPECT_EQ(pair.client.open(pair.server_writes->seal(plain)).plain, plain) << pair.client.engine->error();
  RecordPair other(GetParam());  // which starts at zero
  pair.server_writes->sequence = 0x1'0000'0001;
  EXPECT_EQ(other.client.open(pair.server_writes->seal(plain)).opened, Opened::failed);
}

TEST_P(RecordLayers, OpenOneByteAtATime) {
  RecordPair pair(GetParam());
  const Blob plain = random_blob(random_, 900);
  Blob wire, opened;
  for (size_t size : {1, 300, 599})
    append(wire, pair.client.seal(std::span(plain).subspan(size == 1 ? 0 : size == 300 ? 1 : 301, size)));
  for (std::byte& byte : wire) {
    const Received got = pair.server.open({&byte, 1});
    ASSERT_EQ(got.opened, Opened::ok) << pair.server.engine->error();
    append(opened, got.plain);
  }
  EXPECT_EQ(opened, plain);
  EXPECT_TRUE(pair.server.carry.empty());
}

TEST_P(RecordLayers, OpenChunksOfAnySize) {
  RecordPair pair(GetParam());
  for (int turn = 0; turn < 20; ++turn) {
    Blob plain, wire, opened;
    while (wire.size() < 200000) {
      const Blob more = random_blob(random_, random_() % 3 == 0 ? random_() % 40000 : 1 + random_() % 200);
      append(plain, more);
      append(wire, pair.client.seal(more));
    }
    for (size_t at = 0; at < wire.size();) {
      const size_t size = std::min<size_t>(wire.size() - at, 1 + random_() % (turn % 2 ? 100000 : 7000));
      const Received got = pair.server.open(std::span(wire).subspan(at, size));
      ASSERT_EQ(got.opened, Opened::ok) << pair.server.engine->error();
      append(opened, got.plain);
      at += size;
    }
    ASSERT_EQ(opened, plain);
    EXPECT_TRUE(pair.server.carry.empty());
  }
}

TEST_P(RecordLayers, OpenMoreThanABurstAtOnce) {
  RecordPair pair(GetParam());
  for (size_t records : {31, 32, 33, 64, 65, 500}) {
    Blob plain, wire;
    for (size_t i = 0; i < records; ++i) {
      const Blob more = random_blob(random_, 1 + random_() % 60);
      append(plain, more);
      append(wire, pair.client_writes->seal(more));
    }
    const Blob half = pair.client_writes->seal(blob({9}));
    append(wire, std::span(half).first(half.size() - 1));
    Received got = pair.server.open(wire);
    ASSERT_EQ(got.opened, Opened::ok) << pair.server.engine->error();
    EXPECT_EQ(got.plain, plain);
    EXPECT_EQ(got.pieces, records);
    EXPECT_EQ(pair.server.carry.size(), half.size() - 1);  // the beginning of a record stays
    got = pair.server.open(std::span(half).last(1));
    EXPECT_EQ(got.plain, blob({9}));
  }
}

TEST_P(RecordLayers, OpenOnlyWhenTheRecordIsWhole) {
  RecordPair pair(GetParam());
  const Blob wire = pair.client.seal(random_blob(random_, 40));
  for (size_t size = 0; size < wire.size(); ++size) {
    Blob begun(wire.begin(), wire.begin() + static_cast<ptrdiff_t>(size));
    const Blob before = begun;
    Pieces pieces;
    WireOut out;
    size_t taken = 99;
    ASSERT_EQ(pair.server.engine->open(begun, taken, pieces, out), Opened::ok);
    EXPECT_EQ(taken, 0u);
    EXPECT_TRUE(pieces.empty());
    EXPECT_EQ(begun, before);  // it is presented again
  }
}

TEST_P(RecordLayers, HoldABatchWhileAnotherIsUnderWay) {
  RecordPair pair(GetParam());
  Side& from = pair.client;
  auto second = from.engines->make_batch();
  EXPECT_TRUE(second->empty());
  const Blob plain = random_blob(random_, 100000);
  Room one(70000), two(70000);
  size_t taken = 0, taken_too = 0;
  ASSERT_TRUE(from.engine->seal(std::span(plain).first(50000), one.out, *from.batch, taken));
  from.engines->start(*from.batch);
  ASSERT_TRUE(from.engine->seal(std::span(plain).subspan(50000), two.out, *second, taken_too));
  EXPECT_FALSE(second->empty());
  from.engines->start(*second);
  from.engines->finish(*from.batch);
  EXPECT_TRUE(from.batch->empty());
  from.engines->finish(*second);
  EXPECT_TRUE(second->empty());
  EXPECT_EQ(taken, 50000u);
  EXPECT_EQ(taken_too, 50000u);
  EXPECT_EQ(pair.server.open(one.taken() << two.taken()).plain, plain) << pair.server.engine->error();
}

TEST_P(RecordLayers, FillABatchAndGoOnWithTheNext) {
  RecordPair pair(GetParam());
  const Blob plain = random_blob(random_, 40 * 16384);
  Room room(RecordEngine::sealed_bound(plain.size()));
  size_t taken = 0, more = 0;
  ASSERT_TRUE(pair.client.engine->seal(plain, room.out, *pair.client.batch, taken));
  EXPECT_EQ(taken, 32u * 16384);  // a batch holds so many records
  ASSERT_TRUE(pair.client.engine->seal(std::span(plain).subspan(taken), room.out, *pair.client.batch, more));
  EXPECT_EQ(more, 0u);
  pair.client.finish(*pair.client.batch);
  ASSERT_TRUE(pair.client.engine->seal(std::span(plain).subspan(taken), room.out, *pair.client.batch, more));
  EXPECT_EQ(taken + more, plain.size());
  pair.client.finish(*pair.client.batch);
  Blob opened;
  const Blob wire = room.taken();
  for (size_t at = 0; at < wire.size(); at += kMostReceived / 2)
    append(
        opened,
        pair.server.open(std::span(wire).subspan(at, std::min(kMostReceived / 2, wire.size() - at))).plain);
  EXPECT_EQ(opened, plain);
}

TEST_P(RecordLayers, ShareABatchAmongFlows) {
  RecordPair pair(GetParam());
  struct Flow {
    std::unique_ptr<RecordEngine> from, to;
    Blob plain, wire;
  };
  std::vector<Flow> flows(5);
  for (Flow& flow : flows) {
    flow.from = pair.add_flow(pair.client, Role::client);
    flow.to = pair.add_flow(pair.server, Role::server);
  }
  for (int turn = 0; turn < 40; ++turn) {
    Room room(1 << 20);
    std::array<Blob, 25> lent;  // until the batch is finished
    struct Part {
      Flow* flow;
      size_t at, size;
    };
    std::vector<Part> parts;
    for (Blob& plain : lent) {
      Flow& flow = flows[random_() % flows.size()];
      plain = random_blob(random_, 1 + random_() % 2000);
      const size_t at = room.out.size;
      size_t taken = 0;
      ASSERT_TRUE(flow.from->seal(plain, room.out, *pair.client.batch, taken));
      ASSERT_EQ(taken, plain.size());
      append(flow.plain, plain);
      parts.push_back({&flow, at, room.out.size - at});
    }
    pair.client.finish(*pair.client.batch);
    const Blob all = room.taken();
    for (const Part& part : parts) append(part.flow->wire, std::span(all).subspan(part.at, part.size));
  }
  for (Flow& flow : flows) {
    Pieces pieces;
    WireOut out;
    size_t taken = 0;
    ASSERT_EQ(flow.to->open(flow.wire, taken, pieces, out), Opened::ok) << flow.to->error();
    Blob opened;
    for (const auto& piece : pieces) append(opened, piece);
    EXPECT_EQ(opened, flow.plain);
  }
}

TEST_P(RecordLayers, TakeEmptyAndPaddedRecords) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  const Blob plain = random_blob(random_, 16384);
  EXPECT_EQ(pair.server.open(client.seal({})).plain, Blob());
  EXPECT_EQ(pair.server.open(client.seal({}, kDataType, 16384)).plain, Blob());
  EXPECT_EQ(pair.server.open(client.seal(plain, kDataType, 0)).plain, plain);  // the longest inner plaintext
  const Blob zeros(100, std::byte{0});  // data that ends in zeros is not padding
  EXPECT_EQ(pair.server.open(client.seal(zeros, kDataType, 33)).plain, zeros);
  for (size_t size : {1, 2, 100, 16383}) {
    const auto part = std::span(plain).first(size);
    for (size_t padding : {size_t{1}, size_t{15}, 16384 - size}) {
      if (size + padding > 16384) continue;
      const Received got = pair.server.open(client.seal(part, kDataType, padding));
      EXPECT_EQ(got.plain, Blob(part.begin(), part.end()))
          << size << '+' << padding << ' ' << pair.server.engine->error();
    }
  }
  EXPECT_STREQ(pair.server.engine->error(), "");
}

TEST_P(RecordLayers, RekeyByThemselvesAndLoseNothing) {
  PairOptions options;
  options.rekey_records = 3;
  RecordPair pair(GetParam(), options);
  Blob plain, opened, carry;
  while (pair.client.engine->key_updates_out() < 1000) {
    const Blob more = random_blob(random_, 1 + random_() % (random_() % 20 ? 50 : 40000));
    append(plain, more);
    Blob wire;
    for (std::span<const std::byte> rest = more; !rest.empty();) {  // a batch ends where the key does
      Room room(RecordEngine::sealed_bound(rest.size()));
      size_t taken = 0;
      ASSERT_TRUE(pair.client.engine->seal(rest, room.out, *pair.client.batch, taken));
      pair.client.finish(*pair.client.batch);
      ASSERT_GT(taken, 0u);
      append(wire, room.taken());
      rest = rest.subspan(taken);
    }
    append(carry, wire);
    if (random_() % 4 && carry.size() < 100000) continue;
    const Received got = pair.server.open(carry);
    carry.clear();
    ASSERT_EQ(got.opened, Opened::ok) << pair.server.engine->error();
    EXPECT_TRUE(got.answer.empty());  // update_not_requested
    append(opened, got.plain);
  }
  append(opened, pair.server.open(carry).plain);
  EXPECT_EQ(opened, plain);
  EXPECT_EQ(pair.server.engine->key_updates_in(), pair.client.engine->key_updates_out());
  EXPECT_EQ(pair.server.engine->key_updates_out(), 0u);
}

TEST_P(RecordLayers, RekeyAfterSoManyRecordsOnTheDot) {
  PairOptions options;
  options.rekey_records = 4;
  options.client_sent = 1;
  RecordPair pair(GetParam(), options);
  Oracle& oracle = *pair.client_writes;
  Blob wire;
  for (int i = 0; i < 8; ++i) append(wire, pair.client.seal(blob({i})));
  std::string types;  // d data, K KeyUpdate
  for (const Blob& record : split(wire)) {
    const auto inner = oracle.open(record);
    ASSERT_TRUE(inner) << types;
    types += inner->type == kDataType ? 'd' : 'K';
    if (inner->type == kDataType) continue;
    EXPECT_EQ(inner->type, kHandshakeType);
    EXPECT_EQ(inner->content, key_update(0));
    oracle.update();
  }
  EXPECT_EQ(types, "dddKddddKd");  // one was sent before
}

TEST_P(RecordLayers, ABatchUnderWayKeepsTheOldKey) {
  PairOptions options;
  options.rekey_records = 2;
  RecordPair pair(GetParam(), options);
  Side& from = pair.client;
  auto second = from.engines->make_batch();
  const Blob plain = random_blob(random_, 3 * 16384);
  Room one(70000), two(70000);
  size_t taken = 0, none = 99;
  ASSERT_TRUE(from.engine->seal(plain, one.out, *from.batch, taken));
  EXPECT_EQ(taken, 2u * 16384);  // the third needs the next key
  from.engines->start(*from.batch);
  ASSERT_TRUE(from.engine->seal(std::span(plain).subspan(taken), two.out, *second, none));
  EXPECT_EQ(none, 0u);
  EXPECT_TRUE(second->empty());
  EXPECT_EQ(two.out.size, 0u);
  from.engines->finish(*from.batch);
  ASSERT_TRUE(from.engine->seal(std::span(plain).subspan(taken), two.out, *second, none));
  EXPECT_EQ(none, 16384u);
  from.finish(*second);
  EXPECT_EQ(from.engine->key_updates_out(), 1u);
  EXPECT_EQ(pair.server.open(one.taken() << two.taken()).plain, plain) << pair.server.engine->error();
}

TEST(RecordLayer, TheLimitsOfTheCiphers) {
  EXPECT_EQ(rekey_limit(Cipher::aes_128_gcm), uint64_t{1} << 24);  // below 2^24.5 (RFC 8446, 5.5)
  EXPECT_EQ(rekey_limit(Cipher::aes_256_gcm), uint64_t{1} << 24);
  EXPECT_GT(rekey_limit(Cipher::chacha20_poly1305), uint64_t{1} << 48);
  PairOptions options;
  options.rekey_records = uint64_t{1} << 40;  // more than AES-GCM may
  options.client_sent = (uint64_t{1} << 24) - 1;
  RecordPair pair(Cipher::aes_128_gcm, options);
  pair.client.seal(blob({1}));
  EXPECT_EQ(pair.client.engine->key_updates_out(), 0u);
  pair.client.seal(blob({2}));
  EXPECT_EQ(pair.client.engine->key_updates_out(), 1u);
}

}  // namespace
}  // namespace fsbl::records
