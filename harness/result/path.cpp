#include "harness/result/path.h"

#include <algorithm>

#include "harness/result/json_reader.h"

namespace fsbl {
namespace {

Json to_json(const Evidence& evidence) {
  Json json{{"source", evidence.source}, {"counter", evidence.counter}};
  if (!evidence.before.is_null()) json["before"] = evidence.before;
  if (!evidence.after.is_null()) json["after"] = evidence.after;
  if (!evidence.expected.empty()) json["expected"] = evidence.expected;
  if (!evidence.unit.empty()) json["unit"] = evidence.unit;
  return json;
}

Evidence read_evidence(const JsonReader& in) {
  Evidence evidence;
  evidence.source = in["source"].text();
  evidence.counter = in["counter"].text();
  if (const auto before = in.find("before")) evidence.before = before->any();
  if (const auto after = in.find("after")) evidence.after = after->any();
  evidence.expected = in.text_or_empty("expected");
  evidence.unit = in.text_or_empty("unit");
  return evidence;
}

}  // namespace

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::proved:
      return "proved";
    case Verdict::unproven:
      return "unproven";
    case Verdict::contradicted:
      return "contradicted";
  }
  return "unproven";
}

Verdict combine(const std::vector<LayerProof>& layers) {
  const auto is = [](Verdict verdict) {
    return [verdict](const LayerProof& layer) { return layer.verdict == verdict; };
  };
  if (std::any_of(layers.begin(), layers.end(), is(Verdict::contradicted))) return Verdict::contradicted;
  if (!layers.empty() && std::all_of(layers.begin(), layers.end(), is(Verdict::proved)))
    return Verdict::proved;
  return Verdict::unproven;
}

Json to_json(const LayerProof& proof) {
  Json json{{"layer", proof.layer},
            {"side", proof.side},
            {"claimed", proof.claimed},
            {"witnessed", proof.witnessed},
            {"verdict", to_text(proof.verdict)},
            {"kind", proof.kind}};
  if (!proof.device_class.empty()) json["device_class"] = proof.device_class;
  json["evidence"] = Json::array();
  for (const Evidence& evidence : proof.evidence) json["evidence"].push_back(to_json(evidence));
  return json;
}

LayerProof read_layer_proof(const JsonReader& in) {
  LayerProof proof;
  proof.layer = in["layer"].text();
  proof.side = in["side"].text();
  proof.claimed = in["claimed"].text();
  proof.witnessed = in["witnessed"].text();
  proof.verdict = in["verdict"].one_of<Verdict>({{"unproven", Verdict::unproven},
                                                 {"proved", Verdict::proved},
                                                 {"contradicted", Verdict::contradicted}});
  proof.kind = in["kind"].text();
  proof.device_class = in.text_or_empty("device_class");
  in["evidence"].each([&](const JsonReader& evidence) { proof.evidence.push_back(read_evidence(evidence)); });
  return proof;
}

LayerProof layer_proof_from_json(const Json& json) {
  JsonReader::Failure ignored;
  return read_layer_proof(JsonReader(json, ignored));
}

}  // namespace fsbl
