// Verdicts on a tunnel: proved, contradicted, unproven, and missing or broken counters.
#include "transports/wireguard/proof.h"

#include <gtest/gtest.h>

namespace fsbl::wireguard {
namespace {

const Claim kClaim{"client", "wireguard-go (CPU)", "UAPI get of wg0", "self", "cpu"};

Counters counters(uint64_t tx, uint64_t rx, uint64_t handshake = 1700000000) {
  return {{"tx_bytes", tx}, {"rx_bytes", rx}, {"last_handshake_time_sec", handshake}};
}

LayerProof prove(const Counters& before, const Counters& after, uint64_t sent, uint64_t received) {
  return prove_by_counters(kClaim, before, after, {.sent_bytes = sent, .received_bytes = received});
}

TEST(TunnelProof, ProvedWhenBothCountersCoverTheTraffic) {
  const auto proof = prove(counters(148, 92), counters(100'148, 5'092), 100'000, 5'000);
  EXPECT_EQ(proof.verdict, Verdict::proved);
  EXPECT_EQ(proof.witnessed, proof.claimed);
  EXPECT_EQ(proof.layer, "tunnel");
  EXPECT_EQ(proof.side, "client");
  EXPECT_EQ(proof.kind, "self");
  EXPECT_EQ(proof.device_class, "cpu");
  ASSERT_EQ(proof.evidence.size(), 3u);
  EXPECT_EQ(proof.evidence[0].counter, "tx_bytes");
  EXPECT_EQ(proof.evidence[0].before, 148);
  EXPECT_EQ(proof.evidence[0].after, 100'148);
  EXPECT_EQ(proof.evidence[0].expected, ">= 100000");
  EXPECT_EQ(proof.evidence[1].expected, ">= 5000");
  // One direction only, as in a stream.
  EXPECT_EQ(prove(counters(0, 0), counters(100'000, 0), 100'000, 0).verdict, Verdict::proved);
}

TEST(TunnelProof, ContradictedWhenBytesWentAnotherWay) {
  EXPECT_EQ(prove(counters(148, 92), counters(148, 92), 100'000, 5'000).verdict, Verdict::contradicted);
  // The tunnel was merely kept alive.
  EXPECT_EQ(prove(counters(148, 92), counters(148 + 148, 92), 100'000, 0).verdict, Verdict::contradicted);
  const auto proof = prove(counters(0, 0), counters(100'000, 4'999), 100'000, 5'000);
  EXPECT_EQ(proof.verdict, Verdict::contradicted);
  EXPECT_EQ(proof.witnessed, "received 4999 B in the tunnel, 5000 B by the worker");
}

TEST(TunnelProof, UnprovenWhenCountersSayTooLittle) {
  EXPECT_EQ(prove(counters(0, 0), counters(99'999, 5'000), 100'000, 5'000).verdict, Verdict::unproven);
  EXPECT_EQ(prove(counters(0, 0), counters(100'000, 5'000), 0, 0).witnessed, "no traffic");
  EXPECT_EQ(prove(counters(100, 0), counters(99, 5'000), 0, 5'000).witnessed, "tx_bytes went backwards");
  EXPECT_EQ(prove(counters(0, 100), counters(5'000, 99), 5'000, 0).witnessed, "rx_bytes went backwards");
  EXPECT_EQ(prove(counters(0, 0, 0), counters(5'000, 0, 0), 5'000, 0).witnessed, "no handshake");
  const auto missing = prove(counters(0, 0), {}, 100'000, 5'000);
  EXPECT_EQ(missing.verdict, Verdict::unproven);
  EXPECT_EQ(missing.witnessed, "no counter tx_bytes");
  EXPECT_TRUE(missing.evidence[0].after.is_null());
}

}  // namespace
}  // namespace fsbl::wireguard
