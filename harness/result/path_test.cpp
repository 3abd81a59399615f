#include "harness/result/path.h"

#include <gtest/gtest.h>

namespace fsbl {
namespace {

LayerProof layer(Verdict verdict) {
  LayerProof proof;
  proof.verdict = verdict;
  return proof;
}

TEST(PathVerdict, OneContradictionIsEnoughAndProofNeedsAll) {
  using enum Verdict;
  EXPECT_EQ(combine({}), unproven) << "nothing was seen";
  EXPECT_EQ(combine({layer(proved)}), proved);
  EXPECT_EQ(combine({layer(proved), layer(proved)}), proved);
  EXPECT_EQ(combine({layer(proved), layer(unproven)}), unproven);
  EXPECT_EQ(combine({layer(unproven), layer(contradicted)}), contradicted);
  EXPECT_EQ(combine({layer(contradicted), layer(proved)}), contradicted);
}

TEST(LayerProofJson, RoundTrip) {
  LayerProof proof{"tunnel", "client", "WireGuard", "nothing", Verdict::contradicted, "kernel", "cpu", {}};
  proof.evidence.push_back({"UAPI get of wg0", "tx_bytes", 148, 148, ">= 65536", "B"});
  proof.evidence.push_back({"getsockopt", "cipher", nullptr, "TLS_AES_256_GCM_SHA384", "", ""});
  const Json json = to_json(proof);
  EXPECT_EQ(json["verdict"], "contradicted");
  EXPECT_FALSE(json["evidence"][1].contains("before"));
  EXPECT_EQ(to_json(layer_proof_from_json(json)), json);
}

TEST(LayerProofJson, DamageNeverThrowsAndNeverProves) {
  for (const char* text :
       {"null", "3", "[]", "{}", R"({"verdict": "certain"})", R"({"verdict": 1, "evidence": 2})",
        R"({"layer": {}, "evidence": [1, {}, null]})"}) {
    const LayerProof proof = layer_proof_from_json(Json::parse(text));
    EXPECT_EQ(proof.verdict, Verdict::unproven) << text;
  }
}

}  // namespace
}  // namespace fsbl
