// WireGuard's keys and its configuration protocol as text.
#include "transports/wireguard/uapi.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <thread>

#include "harness/core/fd.h"

namespace fsbl::wireguard {
namespace {

constexpr std::string_view kReply =
    "private_key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
    "listen_port=51820\n"
    "public_key=202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f\n"
    "preshared_key=0000000000000000000000000000000000000000000000000000000000000000\n"
    "protocol_version=1\n"
    "endpoint=198.18.0.2:51820\n"
    "last_handshake_time_sec=1700000000\n"
    "last_handshake_time_nsec=5\n"
    "tx_bytes=18446744073709551615\n"
    "rx_bytes=92\n"
    "persistent_keepalive_interval=0\n"
    "allowed_ip=198.19.0.2/32\n"
    "errno=0\n"
    "\n";

TEST(Keys, PairsAreFreshAndMovesLeaveNothingBehind) {
  auto one = make_key_pair().value(), two = make_key_pair().value();
  EXPECT_NE(one.public_key, two.public_key);
  const auto secret = one.secret.bytes;
  EXPECT_NE(secret, (std::array<uint8_t, 32>{}));
  const SecretKey moved = std::move(one.secret);
  EXPECT_EQ(moved.bytes, secret);
  EXPECT_EQ(one.secret.bytes, (std::array<uint8_t, 32>{}));
}

TEST(Keys, Base64) {
  PublicKey key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(to_base64(key), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
  EXPECT_EQ(public_key_from_base64(to_base64(key)).value(), key);
  for (const char* bad :
       {"", "AAEC", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "not base64 at all, but of the right length!!=",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",  // stray bits behind the key
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh==", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A"})
    EXPECT_FALSE(public_key_from_base64(bad)) << bad;
}

TEST(Uapi, SetRequest) {
  SecretKey secret;
  secret.bytes.fill(0xab);
  PublicKey peer;
  peer.fill(0x01);
  const std::string x32 = "abababababababababababababababababababababababababababababababab";
  const std::string one = "0101010101010101010101010101010101010101010101010101010101010101";
  EXPECT_EQ(
      set_request(secret, 51820, {peer, "[2001:2::2]:51820", "2001:2:0:ffff::2/128"}),
      "set=1\nprivate_key=" + x32 + "\nlisten_port=51820\nreplace_peers=true\npublic_key=" + one +
          "\nendpoint=[2001:2::2]:51820\nreplace_allowed_ips=true\nallowed_ip=2001:2:0:ffff::2/128\n\n");
}

TEST(Uapi, GetReply) {
  const auto state = parse_get_reply(kReply);
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->listen_port, 51820);
  ASSERT_EQ(state->peers.size(), 1u);
  EXPECT_EQ(state->peers[0].tx_bytes, UINT64_MAX);
  EXPECT_EQ(state->peers[0].rx_bytes, 92u);
  EXPECT_EQ(state->peers[0].last_handshake_time_sec, 1700000000u);
  EXPECT_EQ(state->peers[0].last_handshake_time_nsec, 5u);
  EXPECT_EQ(parse_get_reply("errno=0\n\n")->peers.size(), 0u);
}

TEST(Uapi, BadReplies) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not ended"},
      {"errno=0\n", "not ended"},
      {"errno=0", "line 1 is not ended"},
      {"listen_port=1\n\n", "no errno"},
      {"listen_port\nerrno=0\n\n", "line 1 has no '='"},
      {"listen_port=x\nerrno=0\n\n", "line 1 is malformed"},
      {"listen_port=65536\nerrno=0\n\n", "line 1 is malformed"},
      {"tx_bytes=1\nerrno=0\n\n", "line 1 is malformed"},  // belongs to no peer
      {"public_key=00\ntx_bytes=-1\nerrno=0\n\n", "line 2 is malformed"},
      {"public_key=00\ntx_bytes=18446744073709551616\nerrno=0\n\n", "line 2 is malformed"},
      {"public_key=00\nrx_bytes=1 \nerrno=0\n\n", "line 2 is malformed"},
      {"errno=nonsense\n\n", "line 1 is malformed"},
      {"errno=-98\n\n", "EADDRINUSE"},
      {"errno=22\n\n", "EINVAL"},
      {"errno=0\n\nmore\n", "text after"},
  };
  for (const auto& [reply, why] : cases) {
    const auto state = parse_get_reply(reply);
    ASSERT_FALSE(state) << reply;
    EXPECT_NE(state.error().why.find(why), std::string::npos) << reply << ": " << state.error().why;
  }
  EXPECT_TRUE(parse_set_reply("errno=0\n\n"));
  EXPECT_FALSE(parse_set_reply("errno=-22\n\n"));
  EXPECT_FALSE(parse_set_reply(""));
}

TEST(Uapi, ErrorsNeverQuoteTheReply) {
  // Every prefix is damaged somewhere else; none of the errors may show the key.
  for (size_t size = 0; size < kReply.size(); ++size) {
    const auto state = parse_get_reply(kReply.substr(0, size));
    ASSERT_FALSE(state) << size;
    EXPECT_EQ(state.error().message().find("0001020304"), std::string::npos);
  }
}

// A daemon that answers with `reply` and closes.
struct FakeDaemon {
  explicit FakeDaemon(std::string reply)
      : path(std::filesystem::temp_directory_path() / ("fsbl_uapi_" + std::to_string(getpid()) + ".sock")) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    listener.reset(::socket(AF_UNIX, SOCK_STREAM, 0));
    bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener.get(), 1);
    thread = std::thread([this, reply = std::move(reply)] {
      const UniqueFd connection(accept(listener.get(), nullptr, nullptr));
      char request[64];
      [[maybe_unused]] auto n = read(connection.get(), request, sizeof request);
      for (const char c : reply)  // byte by byte: a reply may arrive in any pieces
        n = send(connection.get(), &c, 1, MSG_NOSIGNAL);
    });
  }
  ~FakeDaemon() {
    thread.join();
    std::filesystem::remove(path);
  }
  std::filesystem::path path;
  UniqueFd listener;
  std::thread thread;
};

TEST(Uapi, ExchangeReadsToTheEmptyLine) {
  const FakeDaemon daemon{std::string(kReply)};
  const auto reply = exchange(daemon.path, get_request(), 5'000'000'000);
  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(*reply, kReply);
}

TEST(Uapi, ExchangeIsBounded) {
  EXPECT_FALSE(exchange("/nonexistent/wg0.sock", get_request(), 1'000'000'000));
  EXPECT_FALSE(exchange(std::string(200, 'x'), get_request(), 1'000'000'000));
  {
    const FakeDaemon daemon("errno=0\n");
    EXPECT_EQ(exchange(daemon.path, get_request(), 5'000'000'000).error().why,
              "the daemon closed the connection");
  }
  const FakeDaemon daemon(std::string(70'000, 'x'));
  EXPECT_EQ(exchange(daemon.path, get_request(), 5'000'000'000).error().why, "reply too long");
}

}  // namespace
}  // namespace fsbl::wireguard
