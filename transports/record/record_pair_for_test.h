// For tests: two record layers back to back, client and server, over a chosen cipher back end, with secrets
// from a seed; and for each direction an oracle that can stand in for either end.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness/scenario/model.h"
#include "transports/record/hooked_aead_for_test.h"
#include "transports/record/record_layer.h"
#include "transports/record/record_oracle_for_test.h"

namespace fsbl::records {

struct Tickets final : TicketSink {
  std::vector<Blob> records;
  void ticket(std::span<const std::byte> record) noexcept override {
    records.emplace_back(record.begin(), record.end());
  }
};

// Room for what is sealed, with canaries behind it.
class Room {
 public:
  explicit Room(size_t capacity) : bytes_(capacity + kCanaries, kCanary), out{bytes_.data(), 0, capacity} {}
  ~Room() {
    EXPECT_TRUE(std::all_of(bytes_.begin() + static_cast<ptrdiff_t>(out.capacity), bytes_.end(),
                            [](std::byte b) { return b == kCanary; }))
        << "written behind the room";
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  Blob taken() const { return {bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(out.size)}; }

 private:
  static constexpr size_t kCanaries = 128;
  static constexpr std::byte kCanary{0xA5};
  Blob bytes_;

 public:
  WireOut out;
};

struct Received {  // of one or more open()
  Opened opened = Opened::ok;
  Blob plain, answer;
  size_t taken = 0, pieces = 0;
};

struct Side {
  std::unique_ptr<AeadEngines> engines;  // outlives its flow
  std::unique_ptr<RecordEngine> engine;
  std::unique_ptr<RecordBatch> batch;
  Blob carry;  // received and not opened

  void finish(RecordBatch& planned) {
    engines->start(planned);
    engines->finish(planned);
  }
  // Seals all of `plain` as the driver does: in pieces of what one batch takes.
  Blob seal(std::span<const std::byte> plain) {
    Blob wire;
    while (!plain.empty()) {
      const auto piece = plain.first(std::min<size_t>(plain.size(), 256 << 10));
      Room room(RecordEngine::sealed_bound(piece.size()));
      size_t taken = 0;
      const bool ok = engine->seal(piece, room.out, *batch, taken);
      const bool planned = !batch->empty();
      finish(*batch);
      EXPECT_TRUE(ok && planned && taken > 0 && !*engine->error()) << engine->error();
      if (!ok || taken == 0) break;
      append(wire, room.taken());
      plain = plain.subspan(taken);
    }
    return wire;
  }
  // One open() of what is carried and `more`; what it leaves is carried on.
  Received open(std::span<const std::byte> more, size_t answer_room = 4096) {
    append(carry, more);
    Blob wire = carry;  // opened in place
    Room room(answer_room);
    Pieces pieces;
    pieces.reserve(wire.size() / 22 + 1);
    Received got;
    got.opened = engine->open(wire, got.taken, pieces, room.out);
    got.pieces = pieces.size();
    for (const auto& piece : pieces) append(got.plain, piece);
    got.answer = room.taken();
    EXPECT_LE(got.taken, wire.size());
    EXPECT_EQ(got.opened == Opened::failed, *engine->error() != '\0');
    carry.assign(wire.begin() + static_cast<ptrdiff_t>(std::min(got.taken, wire.size())), wire.end());
    return got;
  }
};

struct PairOptions {
  uint64_t rekey_records = 0;                 // 0: the cipher's limit
  uint64_t client_sent = 0, server_sent = 0;  // before the record layers took over
  TicketSink* client_tickets = nullptr;
  TicketSink* server_tickets = nullptr;
  std::shared_ptr<HookedAead::Hooks> client_hooks = nullptr;  // null: EVP itself
  uint64_t seed = 1;
};

class RecordPair {
 public:
  explicit RecordPair(Cipher cipher, const PairOptions& options = {}) : suite(suite_for(cipher)) {
    std::mt19937_64 random(options.seed);
    const size_t bytes = hash_bytes(suite.hash);
    client_secret = random_blob(random, bytes);
    server_secret = random_blob(random, bytes);
    CellConfig cell;
    cell.tls.rekey_records = options.rekey_records;
    for (Role role : {Role::client, Role::server}) {
      const bool is_client = role == Role::client;
      EngineConfig config;
      config.cell = &cell;
      config.role = role;
      std::unique_ptr<Aead> aead = is_client && options.client_hooks
                                       ? std::make_unique<HookedAead>(cipher, options.client_hooks)
                                       : make_evp(cipher);
      Side& side = is_client ? client : server;
      side.engines = std::make_unique<AeadEngines>(std::make_shared<NoDevice>(), std::move(aead), suite,
                                                   config, std::nullopt);
      side.engine =
          add_flow(side, role, options, is_client ? options.client_tickets : options.server_tickets);
      side.batch = side.engines->make_batch();
    }
    client_writes.emplace(suite, client_secret, options.client_sent);
    server_writes.emplace(suite, server_secret, options.server_sent);
  }

  // One more flow under the same secrets.
  std::unique_ptr<RecordEngine> add_flow(Side& side, Role role, const PairOptions& options = {},
                                         TicketSink* tickets = nullptr) const {
    TrafficSecrets secrets;
    std::copy(client_secret.begin(), client_secret.end(), secrets.client.begin());
    std::copy(server_secret.begin(), server_secret.end(), secrets.server.begin());
    secrets.bytes = client_secret.size();
    const bool is_client = role == Role::client;
    secrets.sent_records = is_client ? options.client_sent : options.server_sent;
    secrets.received_records = is_client ? options.server_sent : options.client_sent;
    EngineContext context;
    context.secrets = &secrets;
    context.tickets = tickets;
    auto engine = side.engines->make(context);
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message());
    return engine ? std::move(*engine) : nullptr;
  }

  Suite suite;
  Blob client_secret, server_secret;
  Side client, server;
  std::optional<Oracle> client_writes, server_writes;  // what the client, the server sends
};

// That `answer` is one record of `from`, a fatal alert of this description (RFC 8446, 6).
inline void expect_alert(Oracle& from, std::span<const std::byte> answer, int description) {
  const auto inner = from.open(answer);
  ASSERT_TRUE(inner) << "no alert that opens, in " << answer.size() << " bytes";
  EXPECT_EQ(inner->type, kAlertType);
  EXPECT_EQ(inner->content, blob({2, description}));
}

constexpr Cipher kCiphers[] = {Cipher::aes_128_gcm, Cipher::aes_256_gcm, Cipher::chacha20_poly1305};
inline std::string cipher_name(const testing::TestParamInfo<Cipher>& info) {
  return info.param == Cipher::aes_128_gcm   ? "Aes128Gcm"
         : info.param == Cipher::aes_256_gcm ? "Aes256Gcm"
                                             : "ChaCha20Poly1305";
}

}  // namespace fsbl::records
