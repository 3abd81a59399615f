// How a flow ends: closed, by an alert, by a record that was tampered with, for want of room, by a cipher
// back end that fails. What came before is delivered, nothing behind it.
#include <openssl/ssl.h>

#include "transports/record/record_pair_for_test.h"

namespace fsbl::records {
namespace {

class Failures : public testing::TestWithParam<Cipher> {
 protected:
  std::mt19937_64 random_{44};
};
INSTANTIATE_TEST_SUITE_P(All, Failures, testing::ValuesIn(kCiphers), cipher_name);

Blob header(int type, size_t behind) {
  return blob({type, 3, 3, static_cast<int>(behind >> 8), static_cast<int>(behind & 255)});
}

// The flow stays as it ended: no more is taken, sealed or said.
void expect_dead(Side& side) {
  const std::string why = side.engine->error();
  EXPECT_NE(why, "");
  const Received got = side.open(blob({23, 3, 3}));
  EXPECT_EQ(got.opened, Opened::failed);
  EXPECT_EQ(got.taken, 0u);
  Room room(1000);
  size_t taken = 99;
  const Blob plain = blob({1});
  EXPECT_FALSE(side.engine->seal(plain, room.out, *side.batch, taken));
  EXPECT_EQ(taken, 0u);
  EXPECT_TRUE(side.batch->empty());
  side.engine->close(room.out);
  EXPECT_EQ(room.out.size, 0u);
  EXPECT_EQ(side.engine->error(), why);
}

TEST_P(Failures, CloseIsSeenAsClosed) {
  RecordPair pair(GetParam());
  const Blob data = pair.client.seal(blob({1, 2}));
  Room room(64);
  pair.client.engine->close(room.out);
  pair.client_writes->open(data);
  EXPECT_EQ(pair.client_writes->open(room.taken())->content, blob({1, 0}));
  Received got = pair.server.open(data << room.taken() << blob({99, 98, 97, 96, 95, 94}));
  EXPECT_EQ(got.opened, Opened::closed);
  EXPECT_EQ(got.plain, blob({1, 2}));
  got = pair.server.open(blob({1, 2, 3, 4, 5, 6, 7}));  // ignored (RFC 8446, 6.1)
  EXPECT_EQ(got.opened, Opened::closed);
  EXPECT_TRUE(got.plain.empty());
  EXPECT_TRUE(pair.server.carry.empty());
  EXPECT_STREQ(pair.server.engine->error(), "");
  EXPECT_EQ(pair.server.engine->alert(), nullptr);
  // The other direction goes on until it is closed, too.
  EXPECT_EQ(pair.client.open(pair.server.seal(blob({3}))).plain, blob({3}));
  Room answer(64);
  pair.server.engine->close(answer.out);
  EXPECT_EQ(pair.client.open(answer.taken()).opened, Opened::closed);
}

TEST_P(Failures, RecordsBehindCloseNotifyAreNotData) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  const Blob wire = client.seal(blob({1}))
                    << client.seal(blob({1, 0}), kAlertType, 70) << client.seal(blob({2}));
  const Received got = pair.server.open(wire);
  EXPECT_EQ(got.opened, Opened::closed);
  EXPECT_EQ(got.plain, blob({1}));
}

TEST_P(Failures, UserCanceledIsNoEnd) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  const Blob wire = client.seal(blob({1, 90}), kAlertType) << client.seal(blob({5}));
  const Received got = pair.server.open(wire);
  EXPECT_EQ(got.opened, Opened::ok);
  EXPECT_EQ(got.plain, blob({5}));
  EXPECT_EQ(pair.server.open(client.seal(blob({1, 0}), kAlertType)).opened, Opened::closed);
}

TEST_P(Failures, EveryOtherAlertIsFatalAndNamed) {
  const std::pair<int, const char*> kAlerts[] = {{10, "unexpected_message"}, {20, "bad record mac"},
                                                 {40, "handshake failure"},  {42, "bad certificate"},
                                                 {80, "internal error"},     {116, "certificate required"}};
  for (const auto& [description, text] : kAlerts)
    for (int level : {1, 2}) {  // the level has no meaning any more
      RecordPair pair(GetParam());
      Oracle& client = *pair.client_writes;
      const Blob wire = client.seal(blob({1}))
                        << client.seal(blob({level, description}), kAlertType) << client.seal(blob({2}));
      const Received got = pair.server.open(wire);
      EXPECT_EQ(got.opened, Opened::failed);
      EXPECT_EQ(got.plain, blob({1}));
      EXPECT_TRUE(got.answer.empty());  // an alert isn't answered
      EXPECT_STREQ(pair.server.engine->alert(), text);
      EXPECT_STREQ(pair.server.engine->error(), "alert from the peer");
      expect_dead(pair.server);
    }
}

TEST_P(Failures, BadFramesAreRefusedWithTheRightAlert) {
  struct {
    Blob frame;
    int alert;
    const char* why;
  } const kBad[] = {
      {header(20, 1) << blob({1}), SSL_AD_UNEXPECTED_MESSAGE, "change_cipher_spec"},
      {header(21, 2) << blob({1, 0}), SSL_AD_UNEXPECTED_MESSAGE, "unknown type"},  // an alert in the clear
      {header(22, 100), SSL_AD_UNEXPECTED_MESSAGE, "unknown type"},
      {header(0, 100), SSL_AD_UNEXPECTED_MESSAGE, "unknown type"},
      {header(255, 65535), SSL_AD_UNEXPECTED_MESSAGE, "unknown type"},
      {header(23, 16384 + 257), SSL_AD_RECORD_OVERFLOW, "longer than"},
      {header(23, 65535), SSL_AD_RECORD_OVERFLOW, "longer than"},
      {header(23, 0), SSL_AD_BAD_RECORD_MAC, "too short"},
      {header(23, 16) << Blob(16), SSL_AD_BAD_RECORD_MAC, "too short"},
      {header(23, 17) << Blob(17), SSL_AD_BAD_RECORD_MAC, "authenticate"},
  };
  for (const auto& bad : kBad)
    for (size_t before : {0, 1, 31, 32, 40}) {
      RecordPair pair(GetParam());
      Blob wire, plain;
      for (size_t i = 0; i < before; ++i) {
        plain.push_back(static_cast<std::byte>(i));
        append(wire, pair.client_writes->seal({&plain.back(), 1}));
      }
      append(wire, bad.frame);
      const Received got = pair.server.open(wire);  // the header is enough
      EXPECT_EQ(got.opened, Opened::failed) << bad.why;
      EXPECT_EQ(got.plain, plain);
      EXPECT_NE(std::string(pair.server.engine->error()).find(bad.why), std::string::npos)
          << pair.server.engine->error();
      expect_alert(*pair.server_writes, got.answer, bad.alert);
      expect_dead(pair.server);
    }
}

TEST_P(Failures, APlaintextLongerThanTheProtocolAllows) {
  for (size_t inner :
       {16385, 16386, 16384 + 256 - 16}) {  // with its content type, as long as the ciphertext may be
    for (bool padding : {false, true}) {
      RecordPair pair(GetParam());
      const Blob wire = padding ? pair.client_writes->seal(blob({1}), kDataType, inner - 2)
                                : pair.client_writes->seal(random_blob(random_, inner - 1));
      const Received got = pair.server.open(wire);
      EXPECT_EQ(got.opened, inner > 16385 ? Opened::failed : Opened::ok) << inner;
      EXPECT_EQ(got.plain.empty(), inner > 16385);
      if (inner > 16385) expect_alert(*pair.server_writes, got.answer, SSL_AD_RECORD_OVERFLOW);
    }
  }
}

TEST_P(Failures, AFlippedBitAnywhereIsFound) {
  Oracle client(suite_for(GetParam()), RecordPair(GetParam()).client_secret);
  const Blob before = client.seal(blob({1, 2, 3})),
             record = client.seal(random_blob(random_, 30), kDataType, 3), behind = client.seal(blob({4}));
  for (size_t bit = 0; bit < record.size() * 8; ++bit) {
    RecordPair pair(GetParam());
    Blob hurt = record;
    hurt[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    Received got = pair.server.open(before << hurt << behind);
    Blob plain = got.plain;
    if (got.opened == Opened::ok) {  // a length that asks for more: until it is there
      const size_t at = bit / 8;
      EXPECT_TRUE(at == 3 || at == 4) << bit;
      got = pair.server.open(Blob(17000));
      append(plain, got.plain);
    }
    EXPECT_EQ(got.opened, Opened::failed) << bit;
    EXPECT_EQ(plain, blob({1, 2, 3})) << bit;
    EXPECT_TRUE(pair.server_writes->open(got.answer)) << bit;
  }
}

TEST_P(Failures, TamperingInTheMiddleOfABurst) {
  for (size_t hurt : {0, 1, 15, 31, 32, 45, 59}) {
    RecordPair pair(GetParam());
    Blob wire, plain;
    for (size_t i = 0; i < 60; ++i) {
      const Blob more = random_blob(random_, 1 + random_() % 500);
      Blob record = pair.client_writes->seal(more);
      if (i == hurt) record[5 + random_() % (record.size() - 5)] ^= std::byte{0x10};
      if (i < hurt) append(plain, more);
      append(wire, record);
    }
    const Received got = pair.server.open(wire);
    EXPECT_EQ(got.opened, Opened::failed);
    EXPECT_EQ(got.plain, plain);
    EXPECT_EQ(got.pieces, hurt);
    EXPECT_EQ(pair.server.engine->records_in(), hurt);
    expect_alert(*pair.server_writes, got.answer, SSL_AD_BAD_RECORD_MAC);
    expect_dead(pair.server);
  }
}

TEST_P(Failures, RecordsOutOfOrderOrTwiceAreRefused) {
  for (int order : {0, 1, 2}) {
    RecordPair pair(GetParam());
    const Blob one = pair.client.seal(blob({1})), two = pair.client.seal(blob({2})),
               three = pair.client.seal(blob({3}));
    const Received got = pair.server.open(order == 0   ? one << three << two
                                          : order == 1 ? one << one << two
                                                       : one << three);
    EXPECT_EQ(got.opened, Opened::failed);
    EXPECT_EQ(got.plain, blob({1}));
  }
  RecordPair pair(GetParam());  // and what one sealed itself is not the peer's
  EXPECT_EQ(pair.client.open(pair.client.seal(blob({1}))).opened, Opened::failed);
}

TEST_P(Failures, NoRoomIsAnErrorAndNeverAWriteBehindIt) {
  const Blob plain = random_blob(random_, 20000);
  const size_t first = 5 + 16384 + 17, both = first + 5 + (20000 - 16384) + 17;
  for (size_t room_bytes : {size_t{0}, size_t{4}, size_t{21}, first - 1, first, both - 1, both}) {
    RecordPair pair(GetParam());
    Room room(room_bytes);
    size_t taken = 0;
    const bool ok = pair.client.engine->seal(plain, room.out, *pair.client.batch, taken);
    pair.client.finish(*pair.client.batch);
    EXPECT_EQ(ok, room_bytes == both);
    EXPECT_EQ(*pair.client.engine->error() == '\0', ok) << room_bytes;
    EXPECT_EQ(room.out.overflow, !ok);
    EXPECT_LE(room.out.size, room_bytes);
  }
}

TEST_P(Failures, NoRoomForWhatIsSaidToThePeer) {
  const size_t update = 5 + 5 + 17, alert = 5 + 2 + 17;
  for (size_t room : {size_t{0}, update - 1, update}) {
    RecordPair pair(GetParam());
    Blob wire = pair.client_writes->seal(key_update(1), kHandshakeType);
    const Received got = pair.server.open(wire, room);
    EXPECT_EQ(got.opened, room == update ? Opened::ok : Opened::failed);
    EXPECT_EQ(*pair.server.engine->error() == '\0', room == update);
  }
  for (size_t room : {size_t{0}, alert - 1}) {  // dead all the same, and says why
    RecordPair pair(GetParam());
    const Received got = pair.server.open(header(23, 0), room);
    EXPECT_EQ(got.opened, Opened::failed);
    EXPECT_TRUE(got.answer.empty());
    EXPECT_NE(std::string(pair.server.engine->error()).find("too short"), std::string::npos);
  }
  RecordPair closing(GetParam());
  Room none(alert - 1);
  closing.client.engine->close(none.out);
  EXPECT_TRUE(none.out.overflow);
  PairOptions options;
  options.rekey_records = 1;
  RecordPair rekeying(GetParam(), options);
  rekeying.client.seal(blob({1}));
  Room little(update - 1);
  size_t taken = 0;
  const Blob plain = blob({2});
  EXPECT_FALSE(rekeying.client.engine->seal(plain, little.out, *rekeying.client.batch, taken));
  EXPECT_NE(std::string(rekeying.client.engine->error()).find("KeyUpdate"), std::string::npos)
      << rekeying.client.engine->error();
  expect_dead(rekeying.client);
}

TEST_P(Failures, ABackEndThatFailsToSeal) {
  PairOptions options;
  options.client_hooks = std::make_shared<HookedAead::Hooks>();
  RecordPair pair(GetParam(), options);
  auto sister = pair.add_flow(pair.client, Role::client);
  bool broken = false;
  options.client_hooks->before = [&](RecordJob& job, KeyUse use) {
    if (!broken || use == KeyUse::open || job.bytes != 7) return true;
    job.state = JobState::failed;
    return false;
  };
  EXPECT_EQ(pair.server.open(pair.client.seal(random_blob(random_, 7))).plain.size(), 7u);
  broken = true;
  const Blob bad = random_blob(random_, 7), good = random_blob(random_, 8);
  Room room(1000);
  size_t taken = 0;
  ASSERT_TRUE(pair.client.engine->seal(bad, room.out, *pair.client.batch, taken));
  ASSERT_TRUE(sister->seal(good, room.out, *pair.client.batch, taken));
  EXPECT_STREQ(pair.client.engine->error(), "");  // not known yet
  pair.client.finish(*pair.client.batch);
  EXPECT_TRUE(pair.client.batch->empty());
  EXPECT_NE(std::string(pair.client.engine->error()).find("failed to seal"), std::string::npos);
  EXPECT_STREQ(sister->error(), "");  // whose record was well
  broken = false;
  expect_dead(pair.client);
}

TEST_P(Failures, ABackEndThatFailsToSealWhatWeSayOurselves) {
  PairOptions options;
  options.client_hooks = std::make_shared<HookedAead::Hooks>();
  RecordPair pair(GetParam(), options);
  options.client_hooks->before = [](RecordJob& job, KeyUse use) {
    if (use == KeyUse::open) return true;
    job.state = JobState::failed;
    return false;
  };
  const Received got = pair.client.open(pair.server_writes->seal(key_update(1), kHandshakeType));
  EXPECT_EQ(got.opened, Opened::failed);
  EXPECT_TRUE(got.answer.empty());  // nothing that isn't sealed gets on the wire
  EXPECT_NE(std::string(pair.client.engine->error()).find("failed to seal"), std::string::npos)
      << pair.client.engine->error();
  expect_dead(pair.client);
}

TEST_P(Failures, ABackEndThatTakesNoMoreKeys) {
  for (int keys = 0; keys < 6; ++keys) {
    PairOptions options;
    options.client_hooks = std::make_shared<HookedAead::Hooks>();
    RecordPair pair(GetParam(), options);  // which took two
    options.client_hooks->keys = keys;
    TrafficSecrets secrets;
    secrets.bytes = pair.client_secret.size();
    EngineContext context;
    context.secrets = &secrets;
    const auto made = pair.client.engines->make(context);
    EXPECT_EQ(made.has_value(), keys >= 2);
    if (!made) {
      EXPECT_NE(made.error().message().find("no more keys"), std::string::npos) << made.error().message();
    }
    // KeyUpdate: a key for opening, then the answer and a key for sealing.
    options.client_hooks->keys = keys;
    Oracle& server = *pair.server_writes;
    Blob wire = server.seal(blob({1})) << server.seal(key_update(1), kHandshakeType);
    server.update();
    append(wire, server.seal(blob({2})));
    const Received got = pair.client.open(wire);
    EXPECT_EQ(got.opened, keys < 2 ? Opened::failed : Opened::ok) << keys;
    EXPECT_EQ(got.plain, keys < 2 ? blob({1}) : blob({1, 2}));
    if (keys >= 2) continue;
    EXPECT_NE(std::string(pair.client.engine->error()).find("no more keys"), std::string::npos)
        << pair.client.engine->error();
    expect_dead(pair.client);
  }
}

TEST_P(Failures, NoKeyForOurOwnUpdate) {
  PairOptions options;
  options.client_hooks = std::make_shared<HookedAead::Hooks>();
  options.rekey_records = 1;
  RecordPair pair(GetParam(), options);
  pair.client.seal(blob({1}));
  options.client_hooks->keys = 0;
  Room room(1000);
  size_t taken = 0;
  const Blob plain = blob({2});
  EXPECT_FALSE(pair.client.engine->seal(plain, room.out, *pair.client.batch, taken));
  expect_dead(pair.client);  // which has no key to seal an alert with
}

TEST(Failure, SecretsThatAreNone) {
  RecordPair pair(Cipher::aes_256_gcm);
  EXPECT_FALSE(pair.client.engines->make({}));
  TrafficSecrets secrets;
  secrets.bytes = 32;  // of the other hash
  EngineContext context;
  context.secrets = &secrets;
  const auto made = pair.client.engines->make(context);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("secrets"), std::string::npos) << made.error().message();
}

// A back end gives out a record that doesn't authenticate decrypted (EVP does) or as it came: a KeyUpdate in
// the middle of a burst is right with both.
TEST_P(Failures, ABackEndThatLeavesAloneWhatItCannotAuthenticate) {
  PairOptions options;
  options.client_hooks = std::make_shared<HookedAead::Hooks>();
  Blob copy;
  options.client_hooks->before = [&](RecordJob& job, KeyUse use) {
    if (use == KeyUse::open) copy.assign(job.record, job.record + kRecordHeaderBytes + job.bytes);
    return true;
  };
  size_t restored = 0;
  options.client_hooks->after = [&](RecordJob& job, KeyUse use) {
    if (use == KeyUse::seal || job.state == JobState::done) return;
    std::copy(copy.begin(), copy.end(), job.record);
    ++restored;
  };
  RecordPair pair(GetParam(), options);
  Oracle& server = *pair.server_writes;
  Blob wire = server.seal(key_update(0), kHandshakeType, 50), plain;
  server.update();
  for (size_t size : {1, 2, 14, 15, 16, 17, 100, 5000, 16384}) {
    const Blob more = random_blob(random_, size);
    append(plain, more);
    append(wire, server.seal(more));
  }
  const Received got = pair.client.open(wire);
  EXPECT_EQ(got.opened, Opened::ok) << pair.client.engine->error();
  EXPECT_EQ(got.plain, plain);
  EXPECT_EQ(restored, 9u);
}

}  // namespace
}  // namespace fsbl::records
