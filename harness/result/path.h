// Path proofs: what each layer claims and what witnessed it (METHOD.md, "The path is proved, not
// configured").
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/json.h"

namespace fsbl {

struct Evidence {
  std::string source;    // "UAPI get of wg0", "packet socket on eth0", "/proc/net/tls_stat"
  std::string counter;   // "tx_bytes"
  Json before, after;    // numbers or strings
  std::string expected;  // in words: ">= 65536"
  std::string unit;
};

enum class Verdict { proved, unproven, contradicted };
std::string_view to_text(Verdict);

struct LayerProof {
  std::string layer;      // "link", "tunnel", "session", "engine"
  std::string side;       // "client" or "server"
  std::string claimed;    // "TLSv1.3 mutual TLS_AES_256_GCM_SHA384"
  std::string witnessed;  // the same words when seen, otherwise what was seen instead
  Verdict verdict = Verdict::unproven;
  std::string kind;          // witness: "self", "peer", "kernel", "device"
  std::string device_class;  // "cpu", "nic", "accelerator"; empty where it means nothing
  std::vector<Evidence> evidence;
};

// contradicted if any layer is; proved if there is at least one layer and all are proved; else unproven.
Verdict combine(const std::vector<LayerProof>& layers);

Json to_json(const LayerProof&);
// Lenient, for messages between fsbl's own processes: what is missing or of a wrong type stays at its
// default, so a damaged verdict is `unproven`. Result files are read strictly (read_layer_proof).
LayerProof layer_proof_from_json(const Json&);
class JsonReader;
LayerProof read_layer_proof(const JsonReader&);

}  // namespace fsbl
