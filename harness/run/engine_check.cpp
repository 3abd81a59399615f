#include "harness/run/engine_check.h"

#include "harness/core/file.h"
#include "harness/core/process.h"
#include "harness/protocol/frame.h"
#include "harness/scenario/load.h"
#include "harness/transport/registry.h"

namespace fsbl {

Expected<Json> check_engine(const CellConfig& config) {
  const EngineDescriptor* engine = find_engine(config.transport.engine);
  if (!engine || !engine->device_class.empty()) return nullptr;
  std::vector<std::string> argv = {"/usr/bin/env"};
  for (const auto& [key, value] : config.worker.environment) argv.push_back(key + "=" + value);
  argv.push_back(config.worker.binary.empty() ? program_path("fsbl-worker").string() : config.worker.binary);
  argv.push_back("--check-engine");
  argv.push_back(dump_json(to_json(config)));
  const std::string what = "try record engine " + config.transport.engine;
  FSBL_ASSIGN(const CommandOutput output, run_command(argv, 30'000'000'000));
  auto reply = parse_json(output.out, what);
  if (!reply || !reply->is_object()) {
    const std::string said = output.err.substr(0, output.err.find('\n'));
    return unavailable(what, said.empty() ? "the worker ended with status " + std::to_string(output.status) : said);
  }
  if (const auto error = reply->find("error"); error != reply->end()) return tl::unexpected(error_from_json(*error));
  return reply->value("ok", Json(nullptr));
}

}  // namespace fsbl
