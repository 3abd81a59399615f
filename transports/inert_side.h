// The agent's end of a layer that has nothing to set up and claims nothing: tunnel none, sessions plain and null.
// What witnesses plaintext is the canary on the link, which the agent itself looks for.
#pragma once
#include <memory>

#include "harness/transport/transport.h"

namespace fsbl {

class InertSide final : public Side {
 public:
  Expected<Json> prepare() override { return Json::object(); }
  Expected<> up(const Json&, const Json&) override { return {}; }
  std::vector<LayerProof> prove(const Counters&, const Counters&, const Traffic&) override { return {}; }
  void down() noexcept override {}
};

inline std::unique_ptr<Side> make_inert_side(const SideContext&) { return std::make_unique<InertSide>(); }
inline Expected<> usable_always(const Host&) { return {}; }

}  // namespace fsbl
