#include "transports/tls/tls_side.h"

#include <fmt/format.h>

#include <set>

#include "harness/identity/svid.h"
#include "harness/transport/registry.h"

namespace fsbl {

std::string worker_spiffe_id(Role role) { return fmt::format("spiffe://{}/worker/{}", kTrustDomain, to_text(role)); }

namespace {

class TlsSide final : public Side {
 public:
  explicit TlsSide(const SideContext& context) : context_(context) {}
  ~TlsSide() override { down(); }

  Expected<Json> prepare() override {
    FSBL_ASSIGN(const SpiffeId id, parse_spiffe_id(worker_spiffe_id(context_.role)));
    FSBL_ASSIGN(key_, make_key_and_csr(context_.config.tls.key, id));
    return Json{{"csr_pem", key_.csr_pem}, {"spiffe_id", id.text()}};
  }

  Expected<> up(const Json&, const Json& grant) override {
    for (const char* field : {"chain_pem", "bundle_pem", "trust_domain", "peer_id"})
      if (!grant.contains(field) || !grant[field].is_string()) return fault("take the certificate", fmt::format("grant lacks {}", field));
    grant_ = grant;
    return {};
  }

  Json worker_secrets() const override {
    Json secrets = grant_;
    if (grant_.value("present", true)) secrets["key_pem"] = key_.private_pem;
    else secrets.erase("chain_pem");
    return secrets;
  }

  std::vector<LayerProof> prove(const Counters&, const Counters&, const Traffic& traffic) override {
    return {prove_session(traffic), prove_engine(traffic)};
  }

  void down() noexcept override { wipe(key_.private_pem); }

 private:
  LayerProof prove_session(const Traffic& traffic) const {
    const TlsConfig& tls = context_.config.tls;
    LayerProof proof;
    proof.layer = "session";
    proof.side = to_text(context_.role);
    proof.kind = "self";
    proof.claimed = fmt::format("TLSv1.3 mutual {} {}", tls.cipher, tls.group);
    const Json handshakes = traffic.worker.value("handshakes", Json::array());
    std::set<std::string> seen;
    for (const Json& h : handshakes)
      seen.insert(fmt::format("{} {} {} {}", h.value("version", ""), h.value("peer_id", "").empty() ? "server-only" : "mutual",
                              h.value("cipher", ""), h.value("group", "")));
    for (const auto& text : seen) proof.witnessed += (proof.witnessed.empty() ? "" : " | ") + text;
    if (seen.empty()) proof.witnessed = "no handshake";
    proof.evidence.push_back({"OpenSSL, after each handshake", "handshakes", 0, handshakes.size(),
                              fmt::format("= {}", traffic.flows), "1"});
    const bool all = handshakes.size() == traffic.flows && traffic.flows > 0;
    proof.verdict = seen.size() == 1 && proof.witnessed == proof.claimed && all ? Verdict::proved
                    : seen.empty() || (proof.witnessed == proof.claimed && !all) ? Verdict::unproven
                                                                                : Verdict::contradicted;
    return proof;
  }

  LayerProof prove_engine(const Traffic& traffic) const {
    const EngineDescriptor* engine = find_engine(context_.config.transport.engine);
    LayerProof proof;
    proof.layer = "engine";
    proof.side = to_text(context_.role);
    proof.kind = "self";
    proof.claimed = context_.config.transport.engine;
    const Json facts = traffic.worker.value("engine", Json::object());
    proof.device_class = facts.value("device_class", engine ? std::string(engine->device_class) : "");
    const auto check = [&](const char* counter, uint64_t bytes) {
      const uint64_t records = traffic.worker.value(counter, uint64_t{0});
      const uint64_t least = (bytes + 16383) / 16384;  // a record holds at most 2^14 bytes (RFC 8446, 5.1)
      proof.evidence.push_back({"record engine " + context_.config.transport.engine, counter, 0, records,
                                fmt::format(">= {}", least), "records"});
      return records >= least;
    };
    const bool out = check("records_out", traffic.sent_bytes), in = check("records_in", traffic.received_bytes);
    // The device's own count: every record that the record layer counted went through it.
    const std::string counter = facts.value("record_counter", std::string());
    bool by_device = true;
    if (!counter.empty()) {
      const uint64_t records = traffic.worker.value("records_out", uint64_t{0}) + traffic.worker.value("records_in", uint64_t{0});
      const uint64_t device = facts.at("counters").value(counter, uint64_t{0});
      by_device = device >= records;
      proof.evidence.push_back({fmt::format("{} on {}", facts.value("version", std::string()), facts.value("device", std::string())),
                                counter, 0, device, fmt::format(">= {}", records), "records"});
    }
    const bool moved = traffic.sent_bytes + traffic.received_bytes > 0;
    proof.verdict = !moved ? Verdict::unproven : out && in && by_device ? Verdict::proved : Verdict::contradicted;
    proof.witnessed = proof.verdict == Verdict::proved ? proof.claimed
                      : !moved                         ? "no traffic"
                      : !by_device ? "fewer records through the device than were sent and received"
                                   : "fewer records than the bytes need";
    if (proof.verdict == Verdict::proved && facts.contains("driver") && facts["driver"] != proof.claimed)
      proof.witnessed += " (" + facts.value("driver", std::string()) + ")";
    return proof;
  }

  SideContext context_;
  KeyPair key_;
  Json grant_;
};

}  // namespace

std::unique_ptr<Side> make_tls_side(const SideContext& context) { return std::make_unique<TlsSide>(context); }

}  // namespace fsbl
