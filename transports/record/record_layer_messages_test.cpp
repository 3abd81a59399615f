// Handshake messages after the handshake (RFC 8446, 4.6): tickets, KeyUpdate, and what must not come.
#include <openssl/ssl.h>

#include "transports/record/record_pair_for_test.h"

namespace fsbl::records {
namespace {

class Messages : public testing::TestWithParam<Cipher> {
 protected:
  std::mt19937_64 random_{43};
  Blob ticket(size_t bytes) { return message(4, random_blob(random_, bytes)); }
};
INSTANTIATE_TEST_SUITE_P(All, Messages, testing::ValuesIn(kCiphers), cipher_name);

// `bad` ends the flow with this alert; the data before it is delivered, that behind it isn't.
void expect_refused(Cipher cipher, Role to, const std::function<Blob(Oracle&)>& bad, int alert,
                    std::string_view why) {
  RecordPair pair(cipher);
  const bool to_client = to == Role::client;
  Side& side = to_client ? pair.client : pair.server;
  Oracle& peer = to_client ? *pair.server_writes : *pair.client_writes;
  Blob wire = peer.seal(blob({1, 2}));
  append(wire, bad(peer));
  append(wire, peer.seal(blob({3})));
  const Received got = side.open(wire);
  EXPECT_EQ(got.opened, Opened::failed);
  EXPECT_EQ(got.plain, blob({1, 2})) << why;
  EXPECT_NE(std::string_view(side.engine->error()).find(why), std::string_view::npos)
      << side.engine->error() << " for " << why;
  expect_alert(to_client ? *pair.client_writes : *pair.server_writes, got.answer, alert);
  EXPECT_EQ(side.engine->alert(), nullptr);  // ours, not the peer's
  Side& other = to_client ? pair.server : pair.client;
  EXPECT_EQ(other.open(got.answer).opened, Opened::failed);
  ASSERT_NE(other.engine->alert(), nullptr);
  EXPECT_STREQ(other.engine->alert(), SSL_alert_desc_string_long(alert));
  EXPECT_STREQ(other.engine->error(), "alert from the peer");
}

TEST_P(Messages, TicketsAreReadOver) {
  RecordPair pair(GetParam());
  Oracle& server = *pair.server_writes;
  const Blob long_one = ticket(40000), two = ticket(100) << ticket(0) << ticket(7);
  Blob wire = server.seal(ticket(200), kHandshakeType);
  append(wire, server.seal(two, kHandshakeType, 20));
  for (size_t at = 0; at < long_one.size(); at += 16384)
    append(wire, server.seal(part(long_one, at, 16384), kHandshakeType));
  append(wire, server.seal(blob({5, 6})));
  const Received got = pair.client.open(wire);
  EXPECT_EQ(got.opened, Opened::ok) << pair.client.engine->error();
  EXPECT_EQ(got.plain, blob({5, 6}));
  EXPECT_TRUE(got.answer.empty());
}

TEST_P(Messages, ATicketMayBreakAnywhere) {
  const Blob both = ticket(6) << ticket(3);
  for (size_t at = 1; at < both.size(); ++at) {
    RecordPair pair(GetParam());
    Oracle& server = *pair.server_writes;
    Blob wire = server.seal(part(both, 0, at), kHandshakeType);
    append(wire, server.seal(part(both, at), kHandshakeType));
    append(wire, server.seal(blob({1})));
    EXPECT_EQ(pair.client.open(wire).plain, blob({1})) << at << pair.client.engine->error();
  }
  RecordPair pair(GetParam());
  Blob wire;
  for (const std::byte& byte : both) append(wire, pair.server_writes->seal({&byte, 1}, kHandshakeType));
  append(wire, pair.server_writes->seal(blob({1})));
  EXPECT_EQ(pair.client.open(wire).plain, blob({1})) << pair.client.engine->error();
}

TEST_P(Messages, TheSinkGetsTheRecordsWithTicketsUntilThereIsData) {
  Tickets tickets;
  PairOptions options;
  options.client_tickets = &tickets;
  RecordPair pair(GetParam(), options);
  Oracle& server = *pair.server_writes;
  const Blob parts = ticket(50) << ticket(90);
  std::vector<Blob> expected = {server.seal(ticket(20000 - 16384), kHandshakeType),
                                server.seal(part(parts, 0, 70), kHandshakeType),
                                server.seal(part(parts, 70), kHandshakeType, 11)};
  Blob wire;
  for (const Blob& record : expected) append(wire, record);
  append(wire, server.seal(blob({1})));
  append(wire, server.seal(ticket(10), kHandshakeType));  // too late: the keeper did not see the data
  append(wire, server.seal(blob({2})));
  Blob plain;
  for (std::byte& byte : wire) {
    const Received got = pair.client.open({&byte, 1});
    ASSERT_EQ(got.opened, Opened::ok) << pair.client.engine->error();
    append(plain, got.plain);
  }
  EXPECT_EQ(plain, blob({1, 2}));
  EXPECT_EQ(tickets.records, expected);
}

TEST_P(Messages, TheSinkGetsNoGap) {
  // After a record that the keeper did not see its sequence number is wrong.
  const auto after = [&](const std::function<Blob(Oracle&)>& first) {
    Tickets tickets;
    PairOptions options;
    options.client_tickets = &tickets;
    RecordPair pair(GetParam(), options);
    Blob wire = first(*pair.server_writes);
    append(wire, pair.server_writes->seal(ticket(10), kHandshakeType));
    EXPECT_EQ(pair.client.open(wire).opened, Opened::ok) << pair.client.engine->error();
    return tickets.records.size();
  };
  EXPECT_EQ(after([](Oracle&) { return Blob(); }), 1u);
  EXPECT_EQ(after([](Oracle& server) { return server.seal({}); }), 0u);
  EXPECT_EQ(after([](Oracle& server) {
              return server.seal(blob({1, 90}), kAlertType);
            }),
            0u);  // user_canceled
  EXPECT_EQ(after([](Oracle& server) {
              Blob wire = server.seal(key_update(0), kHandshakeType);
              server.update();
              return wire;
            }),
            0u);
  EXPECT_EQ(after([](Oracle& server) {  // in halves
              Blob wire = server.seal(part(key_update(0), 0, 2), kHandshakeType)
                          << server.seal(part(key_update(0), 2), kHandshakeType);
              server.update();
              return wire;
            }),
            0u);
}

TEST_P(Messages, WhatMustNotComeIsRefused) {
  const auto sealed = [](Blob content, uint8_t type = kHandshakeType) {
    return [content, type](Oracle& peer) { return peer.seal(content, type); };
  };
  const Blob one = ticket(20);
  for (Role role : {Role::client, Role::server}) {
    const auto refused = [&](const std::function<Blob(Oracle&)>& bad, int alert, std::string_view why) {
      expect_refused(GetParam(), role, bad, alert, why);
    };
    refused(sealed(message(13, one)), SSL_AD_UNEXPECTED_MESSAGE,
            "unexpected handshake message");  // CertificateRequest
    refused(sealed(message(1, one)), SSL_AD_UNEXPECTED_MESSAGE,
            "unexpected handshake message");  // ClientHello
    refused(sealed(key_update(2)), SSL_AD_ILLEGAL_PARAMETER, "malformed KeyUpdate");
    refused(sealed(key_update(255)), SSL_AD_ILLEGAL_PARAMETER, "malformed KeyUpdate");
    refused(sealed(message(24, {})), SSL_AD_DECODE_ERROR, "malformed KeyUpdate");
    refused(sealed(message(24, blob({0, 0}))), SSL_AD_DECODE_ERROR, "malformed KeyUpdate");
    refused(sealed(key_update(0) << key_update(0)), SSL_AD_UNEXPECTED_MESSAGE, "spans a key change");
    refused(sealed(key_update(1) << blob({4})), SSL_AD_UNEXPECTED_MESSAGE, "spans a key change");
    refused(sealed({}), SSL_AD_UNEXPECTED_MESSAGE, "empty handshake record");
    refused(sealed({}, kAlertType), SSL_AD_UNEXPECTED_MESSAGE, "empty alert");
    refused(sealed(blob({1}), kAlertType), SSL_AD_DECODE_ERROR, "malformed alert");
    refused(sealed(blob({1, 0, 1, 0}), kAlertType), SSL_AD_DECODE_ERROR, "malformed alert");
    for (uint8_t type : {uint8_t{1}, uint8_t{kChangeCipherSpecType}, uint8_t{24}, uint8_t{255}})
      refused(sealed(blob({1}), type), SSL_AD_UNEXPECTED_MESSAGE, "unknown content type");
    refused([](Oracle& peer) { return peer.seal_inner(Blob(1)); }, SSL_AD_UNEXPECTED_MESSAGE,
            "without a content type");
    refused([](Oracle& peer) { return peer.seal_inner(Blob(16385)); }, SSL_AD_UNEXPECTED_MESSAGE,
            "without a content type");
  }
  expect_refused(GetParam(), Role::server, sealed(one), SSL_AD_UNEXPECTED_MESSAGE,
                 "unexpected handshake message");
}

TEST_P(Messages, NothingComesInsideAMessage) {
  const Blob one = ticket(20);
  for (uint8_t type : {kDataType, kAlertType})
    for (size_t at : {size_t{1}, size_t{4}, size_t{10}, one.size() - 1})
      for (const Blob& content : {blob({1, 0}), Blob()})
        expect_refused(
            GetParam(), Role::client,
            [&](Oracle& server) {
              const Blob begun = server.seal(part(one, 0, at), kHandshakeType);
              return begun << server.seal(content, type) << server.seal(part(one, at), kHandshakeType);
            },
            SSL_AD_UNEXPECTED_MESSAGE, "inside a handshake message");
  expect_refused(
      GetParam(), Role::server,
      [&](Oracle& client) {
        return client.seal(part(key_update(0), 0, 4), kHandshakeType) << client.seal(blob({1}));
      },
      SSL_AD_UNEXPECTED_MESSAGE, "inside a handshake message");
}

TEST_P(Messages, ThirtyTwoRecordsWithoutDataAndNoMore) {
  for (const bool too_many : {false, true}) {
    RecordPair pair(GetParam());
    Oracle& server = *pair.server_writes;
    Blob wire;
    for (int i = 0; i < 16; ++i) append(wire, server.seal({}) << server.seal(ticket(1), kHandshakeType));
    if (too_many) append(wire, server.seal({}, kDataType, 5));
    append(wire, server.seal(blob({1})));
    for (int i = 0; i < 32; ++i) append(wire, server.seal({}));  // the data began a new count
    append(wire, server.seal(blob({2})));
    const Received got = pair.client.open(wire);
    EXPECT_EQ(got.opened, too_many ? Opened::failed : Opened::ok) << pair.client.engine->error();
    EXPECT_EQ(got.plain, too_many ? Blob() : blob({1, 2}));
    if (too_many) expect_alert(*pair.client_writes, got.answer, SSL_AD_UNEXPECTED_MESSAGE);
  }
}

// So many records, a KeyUpdate, and more under the next key, all in one open().
TEST_P(Messages, AKeyUpdateInTheMiddleOfABurst) {
  for (size_t before : {0, 1, 11, 30, 31, 32, 33})
    for (size_t padding : {size_t{0}, size_t{16384 - 5}})
      for (size_t largest : {3, 60, 16384}) {
        RecordPair pair(GetParam());
        Oracle& client = *pair.client_writes;
        Blob wire, plain;
        const auto data = [&](size_t records) {
          for (size_t i = 0; i < records; ++i) {
            const Blob more = random_blob(random_, 1 + random_() % largest);
            append(plain, more);
            append(wire, client.seal(more, kDataType,
                                     random_() % 5 && more.size() < 16300 ? 0 : 16384 - more.size()));
          }
        };
        data(before);
        append(wire, client.seal(key_update(0), kHandshakeType, padding));
        client.update();
        data(20);
        const Received got = pair.server.open(wire);
        ASSERT_EQ(got.opened, Opened::ok)
            << pair.server.engine->error() << ' ' << before << ' ' << padding << ' ' << largest;
        EXPECT_EQ(got.plain, plain);
        EXPECT_EQ(pair.server.engine->key_updates_in(), 1u);
        EXPECT_EQ(pair.server.engine->records_in(), before + 21);
      }
}

TEST_P(Messages, ManyKeyUpdatesInOneBurst) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  Blob wire, plain;
  for (int i = 0; i < 60; ++i) {
    append(wire, client.seal(key_update(0), kHandshakeType));
    client.update();
    if (i % 3 == 0) continue;  // two in a row
    plain.push_back(static_cast<std::byte>(i));
    append(wire, client.seal({&plain.back(), 1}));
  }
  const Received got = pair.server.open(wire);
  EXPECT_EQ(got.opened, Opened::ok) << pair.server.engine->error();
  EXPECT_EQ(got.plain, plain);
  EXPECT_EQ(pair.server.engine->key_updates_in(), 60u);
}

TEST_P(Messages, AKeyUpdateInTwoRecords) {
  for (size_t at = 1; at < 5; ++at) {
    RecordPair pair(GetParam());
    Oracle& client = *pair.client_writes;
    Blob wire = client.seal(part(key_update(1), 0, at), kHandshakeType)
                << client.seal(part(key_update(1), at), kHandshakeType, 9);
    client.update();
    append(wire, client.seal(blob({7})));
    const Received got = pair.server.open(wire);
    EXPECT_EQ(got.plain, blob({7})) << at << pair.server.engine->error();
    EXPECT_EQ(pair.server_writes->open(got.answer)->content, key_update(0));
  }
}

TEST_P(Messages, WhatIsSealedWithTheOldKeyAfterAKeyUpdateIsRefused) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  const Blob wire = client.seal(blob({1})) << client.seal(key_update(0), kHandshakeType)
                                           << client.seal(blob({2})) << client.seal(blob({3}));
  const Received got = pair.server.open(wire);
  EXPECT_EQ(got.opened, Opened::failed);
  EXPECT_EQ(got.plain, blob({1}));
  expect_alert(*pair.server_writes, got.answer, SSL_AD_BAD_RECORD_MAC);
}

TEST_P(Messages, AnAskedForKeyUpdateIsAnswered) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  Oracle& server = *pair.server_writes;
  Blob wire = client.seal(key_update(1), kHandshakeType);
  client.update();
  Received got = pair.server.open(wire);
  auto answer = server.open(got.answer);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, kHandshakeType);
  EXPECT_EQ(answer->content, key_update(0));  // or the two would go on for ever
  server.update();
  EXPECT_EQ(pair.server.seal(blob({4, 5})), server.seal(blob({4, 5})));
  EXPECT_EQ(pair.server.engine->key_updates_out(), 1u);

  const std::string ask = "KU not requested";
  wire = client.seal(key_update(0), kHandshakeType);
  client.update();
  EXPECT_TRUE(pair.server.open(wire).answer.empty()) << ask;
  EXPECT_EQ(pair.server.seal(blob({6})), server.seal(blob({6})));
}

TEST_P(Messages, BothSidesUpdateAtOnce) {
  RecordPair pair(GetParam());  // the oracle is the client; both ask before they have heard of the other
  Oracle& client = *pair.client_writes;
  Blob wire = client.seal(key_update(1), kHandshakeType);
  client.update();
  append(wire, client.seal(blob({1})));
  const Received got = pair.server.open(wire);
  EXPECT_EQ(got.plain, blob({1}));
  // The client's record layer, which has sent no KeyUpdate of its own, follows the server's answer.
  const Received at_client = pair.client.open(got.answer << pair.server.seal(blob({2, 3})));
  EXPECT_EQ(at_client.plain, blob({2, 3})) << pair.client.engine->error();
  EXPECT_TRUE(at_client.answer.empty());

  PairOptions options;
  options.rekey_records = 1;
  RecordPair crossing(GetParam(), options);
  Blob up = crossing.client.seal(blob({1})) << crossing.client.seal(blob({2}));
  Blob down = crossing.server.seal(blob({3})) << crossing.server.seal(blob({4}));
  EXPECT_EQ(crossing.server.open(up).plain, blob({1, 2})) << crossing.server.engine->error();
  EXPECT_EQ(crossing.client.open(down).plain, blob({3, 4})) << crossing.client.engine->error();
  EXPECT_EQ(crossing.server.open(crossing.client.seal(blob({5}))).plain, blob({5}));
  EXPECT_EQ(crossing.client.open(crossing.server.seal(blob({6}))).plain, blob({6}));
}

TEST_P(Messages, WithABatchUnderWayTheAnswerComesWithTheNextRecord) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  Oracle& server = *pair.server_writes;
  const Blob first = random_blob(random_, 100), second = random_blob(random_, 50);
  Room room(4096);
  size_t taken = 0;
  ASSERT_TRUE(pair.server.engine->seal(first, room.out, *pair.server.batch, taken));
  Blob wire;
  for (int i = 0; i < 2; ++i) {  // asked twice: one answer
    append(wire, client.seal(key_update(1), kHandshakeType));
    client.update();
  }
  EXPECT_TRUE(pair.server.open(wire).answer.empty());
  EXPECT_EQ(pair.server.engine->key_updates_out(), 0u);
  pair.server.finish(*pair.server.batch);
  EXPECT_EQ(room.taken(), server.seal(first));
  const Blob next = pair.server.seal(second);
  Blob expected = server.seal(key_update(0), kHandshakeType);
  server.update();
  append(expected, server.seal(second));
  EXPECT_EQ(next, expected);
  EXPECT_EQ(pair.server.seal(first), server.seal(first));  // once
}

TEST_P(Messages, AnOwedAnswerIsGivenAtTheNextRequest) {
  RecordPair pair(GetParam());
  Oracle& client = *pair.client_writes;
  Room room(4096);
  size_t taken = 0;
  const Blob plain = blob({1});
  ASSERT_TRUE(pair.server.engine->seal(plain, room.out, *pair.server.batch, taken));
  Blob wire = client.seal(key_update(1), kHandshakeType);
  client.update();
  EXPECT_TRUE(pair.server.open(wire).answer.empty());
  pair.server.finish(*pair.server.batch);
  pair.server_writes->open(room.taken());
  wire = client.seal(key_update(0), kHandshakeType);
  client.update();
  const auto answer = pair.server_writes->open(pair.server.open(wire).answer);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->content, key_update(0));
}

}  // namespace
}  // namespace fsbl::records
