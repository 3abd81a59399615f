// Session `plain`: TCP as it is. What witnesses it is the canary, seen in clear on the inner device's underlay.
#include "harness/transport/transport.h"
#include "transports/socket/socket_driver.h"

namespace fsbl {
namespace {

class PlainSide final : public Side {
 public:
  Expected<Json> prepare() override { return Json::object(); }
  Expected<> up(const Json&, const Json&) override { return {}; }
  std::vector<LayerProof> prove(const Counters&, const Counters&, const Traffic&) override { return {}; }
  void down() noexcept override {}
};

}  // namespace

extern const SessionDescriptor session_plain;
const SessionDescriptor session_plain = {
    .name = "plain",
    .summary = "TCP without protection",
    .usable = [](const Host&) -> Expected<> { return {}; },
    .make_side = [](const SideContext&) -> std::unique_ptr<Side> { return std::make_unique<PlainSide>(); },
    .make_driver = [](const DriverContext& context) { return SocketDriver::create(context, nullptr); },
};

}  // namespace fsbl
