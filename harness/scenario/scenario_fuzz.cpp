// Any bytes as a scenario file: a plan or an error, never a crash; and a plan's resolved document makes the
// same plan again. libFuzzer: configure with clang++ and -DFSBL_FUZZ=ON.
#include <cstdlib>

#include "harness/scenario/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string yaml(reinterpret_cast<const char*>(data), size);
  const auto plan = fsbl::plan_text(yaml, "fuzz.yaml", {});
  if (!plan) {
    if (plan.error().kind != fsbl::ErrorKind::bad_input || plan.error().message().empty()) abort();
    return 0;
  }
  const auto again = fsbl::plan_text(fsbl::dump_json(plan->scenarios[0].resolved), "fuzz.yaml", {});
  if (!again || to_json(*again) != to_json(*plan)) abort();
  for (const fsbl::Cell& cell : plan->cells) {
    const auto config = fsbl::cell_config_from_json(to_json(cell.config));
    if (!config || to_json(*config) != to_json(cell.config)) abort();
  }
  return 0;
}
