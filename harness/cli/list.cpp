#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/core/json.h"
#include "harness/core/file.h"
#include "harness/scenario/load.h"
#include "harness/scenario/presets.h"
#include "harness/transport/registry.h"

namespace fsbl {
namespace {

struct Row {
  std::string name, summary;
};

std::vector<Row> rows_of(const std::string& what) {
  std::vector<Row> rows;
  const auto add = [&](auto name, auto summary) { rows.push_back({std::string(name), std::string(summary)}); };
  if (what == "transports")
    for (const Preset& p : presets())
      add(p.name, fmt::format("{} = {} ∘ {}{}{}", p.summary, p.tunnel, p.session, p.engine.empty() ? "" : " ∘ ", p.engine));
  if (what == "tunnels")
    for (const auto* t : tunnels()) add(t->name, t->summary);
  if (what == "sessions")
    for (const auto* s : sessions()) add(s->name, s->summary);
  if (what == "engines")
    for (const auto* e : engines()) add(e->name, e->summary);
  if (what == "probes")
    rows = {{"latency", "request latency in the client, CLOCK_MONOTONIC"},
            {"tcp_info", "retransmits, rtt and congestion window of every socket (TCP_INFO)"},
            {"cpu", "CPU time per role, steal, softirq, memory (thread clocks, procfs)"},
            {"perf", "cycles, instructions, cache and branch misses per role (perf_event_open)"},
            {"interface", "interface counters, reconciled with the bytes that sockets moved (rtnetlink)"}};
  if (what == "scenarios")
    for (const auto& s : list_scenarios({data_dir() / "scenarios"})) add(s.id, s.title);
  return rows;
}

}  // namespace

CommandBody declare_list(CLI::App& app) {
  struct Options {
    std::string what;
    bool json = false, names = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("WHAT", options->what, "what to list")
      ->required()
      ->check(CLI::IsMember({"transports", "tunnels", "sessions", "engines", "probes", "scenarios"}));
  app.add_flag("--json", options->json, "as JSON");
  app.add_flag("--names", options->names, "names only, one a line");
  return [options]() -> Expected<int> {
    const std::vector<Row> rows = rows_of(options->what);
    size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.name.size());
    Json json = Json::array();
    for (const Row& row : rows) {
      if (options->json) json.push_back({{"name", row.name}, {"summary", row.summary}});
      else if (options->names) fmt::print("{}\n", row.name);
      else fmt::print("{:<{}}  {}\n", row.name, width, row.summary);
    }
    if (options->json) fmt::print("{}\n", json.dump(2));
    return 0;
  };
}

}  // namespace fsbl
