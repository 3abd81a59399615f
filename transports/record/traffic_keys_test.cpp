// Keys from secrets: the vectors of RFC 8448, section 3, and an independent computation by HMAC; the whole
// record layer against the records of that trace.
#include "transports/record/traffic_keys.h"

#include <gtest/gtest.h>

#include "transports/record/record_pair_for_test.h"

namespace fsbl {
namespace {

using namespace records;

// RFC 8448, 3: "derive secret "tls13 c ap traffic"" and "s ap traffic", "derive read/write traffic keys for
// application data", and the application data records.
constexpr std::string_view kClientSecret = "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
constexpr std::string_view kServerSecret = "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
constexpr std::string_view kClientRecord =
    "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f"
    "5a6292a29770"
    "14bd1e3deae63aeebb21694915e4";
constexpr std::string_view kServerRecord =
    "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc49c4b"
    "f2e5f0a21c00"
    "47c2abf332540dd032e167c2955d";

Blob fifty_bytes() {
  Blob plain(50);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i);
  return plain;
}

template <size_t N>
Blob first(const std::array<std::byte, N>& bytes, size_t n) {
  return {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n)};
}

TEST(TrafficKeys, AreThoseOfRfc8448) {
  const Suite suite{Cipher::aes_128_gcm, Hash::sha256};
  TrafficKey key;
  ASSERT_TRUE(derive_key(suite, from_hex(kClientSecret), key));
  EXPECT_EQ(first(key.key, 16), from_hex("17422dda596ed5d9acd890e3c63f5051"));
  EXPECT_EQ(first(key.iv, 12), from_hex("5b78923dee08579033e523d9"));
  ASSERT_TRUE(derive_key(suite, from_hex(kServerSecret), key));
  EXPECT_EQ(first(key.key, 16), from_hex("9f02283b6c9c07efc26bb9f2ac92e356"));
  EXPECT_EQ(first(key.iv, 12), from_hex("cf782b88dd83549aadf1e984"));
}

TEST(TrafficKeys, TheRecordsOfRfc8448) {
  const CellConfig cell;
  EngineConfig config;
  config.cell = &cell;
  AeadEngines engines(std::make_shared<NoDevice>(), make_evp(Cipher::aes_128_gcm),
                      {Cipher::aes_128_gcm, Hash::sha256}, config, std::nullopt);
  TrafficSecrets secrets;
  const Blob client = from_hex(kClientSecret), server = from_hex(kServerSecret);
  std::copy(client.begin(), client.end(), secrets.client.begin());
  std::copy(server.begin(), server.end(), secrets.server.begin());
  secrets.bytes = 32;
  secrets.received_records = 1;  // the trace's ticket
  EngineContext context;
  context.secrets = &secrets;
  auto made = engines.make(context);
  ASSERT_TRUE(made);
  RecordEngine& engine = **made;
  auto batch = engines.make_batch();
  Room room(4096);
  size_t taken = 0;
  const Blob plain = fifty_bytes();
  ASSERT_TRUE(engine.seal(plain, room.out, *batch, taken));
  engines.start(*batch);
  engines.finish(*batch);
  EXPECT_EQ(taken, plain.size());
  EXPECT_EQ(room.taken(), from_hex(kClientRecord));

  Room close_room(64);
  engine.close(close_room.out);
  EXPECT_EQ(close_room.taken(), from_hex("1703030013c9872760655666b74d7ff1153efd6db6d0b0e3"));

  Blob wire = from_hex(kServerRecord) << from_hex("1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9");
  Pieces pieces;
  EXPECT_EQ(engine.open(wire, taken, pieces, room.out), Opened::closed) << engine.error();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(Blob(pieces[0].begin(), pieces[0].end()), plain);
}

TEST(TrafficKeys, LabelsExpandAsHmacSays) {
  std::mt19937_64 random(7);
  for (Hash hash : {Hash::sha256, Hash::sha384})
    for (std::string_view label : {"key", "iv", "traffic upd", "finished"})
      for (size_t bytes : {size_t{1}, size_t{12}, size_t{16}, size_t{32}}) {
        const Blob secret = random_blob(random, hash_bytes(hash));
        Blob out(bytes);
        ASSERT_TRUE(expand_label(hash, secret, label, out));
        EXPECT_EQ(out, oracle_expand_label(hash, secret, label, bytes)) << label << ' ' << bytes;
      }
}

TEST(TrafficKeys, KeysAreAsLongAsTheCipherWants) {
  std::mt19937_64 random(8);
  for (Cipher cipher : kCiphers) {
    const Suite suite = suite_for(cipher);
    const Blob secret = random_blob(random, hash_bytes(suite.hash));
    TrafficKey key;
    ASSERT_TRUE(derive_key(suite, secret, key));
    EXPECT_EQ(first(key.key, key_bytes(cipher)),
              oracle_expand_label(suite.hash, secret, "key", cipher == Cipher::aes_128_gcm ? 16 : 32));
    EXPECT_EQ(first(key.iv, 12), oracle_expand_label(suite.hash, secret, "iv", 12));
  }
}

TEST(TrafficKeys, AnUpdateMakesTheNextSecret) {
  std::mt19937_64 random(9);
  for (Hash hash : {Hash::sha256, Hash::sha384}) {
    Blob secret = random_blob(random, hash_bytes(hash)), expected = secret;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(update_secret(hash, secret));
      expected = oracle_expand_label(hash, expected, "traffic upd", hash_bytes(hash));
      EXPECT_EQ(secret, expected) << i;
    }
  }
}

TEST(TrafficKeys, NoncesAreTheIvXorTheSequenceNumber) {
  std::array<std::byte, kNonceBytes> iv{};
  const Blob hex = from_hex("5b78923dee08579033e523d9");
  std::copy(hex.begin(), hex.end(), iv.begin());
  const auto nonce = [&](uint64_t sequence) { return first(record_nonce(iv, sequence), kNonceBytes); };
  EXPECT_EQ(nonce(0), hex);
  EXPECT_EQ(nonce(1), from_hex("5b78923dee08579033e523d8"));
  EXPECT_EQ(nonce(0x100), from_hex("5b78923dee08579033e522d9"));
  EXPECT_EQ(nonce(0x0123456789abcdef), from_hex("5b78923d"
                                                "ef2b12f7"
                                                "ba4eee36"));
  EXPECT_EQ(nonce(UINT64_MAX), from_hex("5b78923d"
                                        "11f7a86f"
                                        "cc1adc26"));
}

TEST(TrafficKeys, SuitesByTheirNames) {
  const auto is = [](std::string_view name, Cipher cipher, Hash hash) {
    const auto suite = suite_of(name);
    return suite && suite->cipher == cipher && suite->hash == hash;
  };
  EXPECT_TRUE(is("TLS_AES_128_GCM_SHA256", Cipher::aes_128_gcm, Hash::sha256));
  EXPECT_TRUE(is("TLS_AES_256_GCM_SHA384", Cipher::aes_256_gcm, Hash::sha384));
  EXPECT_TRUE(is("TLS_CHACHA20_POLY1305_SHA256", Cipher::chacha20_poly1305, Hash::sha256));
  for (const char* name :
       {"TLS_AES_128_CCM_SHA256", "", "tls_aes_128_gcm_sha256", "TLS_AES_128_GCM_SHA2567"}) {
    const auto unknown = suite_of(name);
    ASSERT_FALSE(unknown) << name;
    EXPECT_EQ(unknown.error().kind, ErrorKind::unavailable);
    EXPECT_NE(unknown.error().message().find(name), std::string::npos);
    EXPECT_NE(unknown.error().fix.find("TLS_AES_256_GCM_SHA384"), std::string::npos)
        << unknown.error().message();
  }
}

}  // namespace
}  // namespace fsbl
