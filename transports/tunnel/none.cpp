// Tunnel "none": sessions connect over the testbed's link itself. Claims nothing, so there is nothing to
// prove.
#include "harness/transport/transport.h"

namespace fsbl {
namespace {

class NoTunnel final : public Side {
 public:
  Expected<Json> prepare() override { return Json::object(); }
  Expected<> up(const Json&, const Json&) override { return {}; }
  std::vector<LayerProof> prove(const Counters&, const Counters&, const Traffic&) override { return {}; }
  void down() noexcept override {}
};

Expected<> usable_always(const Host&) {
  return {};
}
std::unique_ptr<Side> make_side(const SideContext&) {
  return std::make_unique<NoTunnel>();
}

}  // namespace

extern const TunnelDescriptor tunnel_none;
const TunnelDescriptor tunnel_none = {"none", "no tunnel: sessions run over the link itself", usable_always,
                                      make_side};

}  // namespace fsbl
