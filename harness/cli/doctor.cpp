#include <fmt/format.h>
#include <sched.h>

#include <sstream>

#include "harness/cli/command.h"
#include "harness/cli/host.h"
#include "harness/core/file.h"
#include "harness/core/json.h"
#include "harness/probe/host_probes.h"
#include "harness/run/engine_check.h"
#include "harness/scenario/presets.h"
#include "harness/testbed/environment.h"
#include "harness/testbed/testbed.h"
#include "harness/transport/registry.h"

namespace fsbl {
namespace {

struct Finding {
  std::string name;
  bool good;
  std::string text, fix;
};

Json to_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& f : findings) json.push_back({{"name", f.name}, {"usable", f.good}, {"text", f.text}, {"fix", f.fix}});
  return json;
}

std::vector<Finding> transport_findings(const Host& host) {
  std::vector<Finding> findings;
  for (const Preset& preset : presets()) {
    const auto composition = composition_of(preset.name);
    if (!composition) continue;
    auto can = usable(*composition, host);
    std::string text = label(*composition);
    if (can) {
      CellConfig config;
      config.transport = *composition;
      const auto facts = check_engine(config);
      if (facts) text = label(*composition, *facts) + (facts->is_null() ? "" : ", " + facts->value("version", std::string()));
      else can = tl::unexpected(facts.error());
    }
    findings.push_back({std::string(preset.name), can.has_value(), can ? text : can.error().why, can ? "" : can.error().fix});
  }
  return findings;
}

std::vector<Finding> probe_findings(const Host& host) {
  std::vector<Finding> findings = {{"latency", true, "worker, CLOCK_MONOTONIC", ""}, {"tcp_info", true, "TCP_INFO", ""},
                                   {"cpu", true, "thread clocks and procfs", ""}};
  PerfProbe perf(getpid());
  perf.begin();
  perf.end();
  std::string have;
  for (const Json& counter : perf.counters()) have += (have.empty() ? "" : " ") + counter.value("name", std::string("?"));
  findings.push_back({"perf", !have.empty(), have.empty() ? "no event opens" : have, ""});
  for (const Json& missing : perf.missing())
    findings.push_back({"perf." + missing.value("name", std::string("?")), false, missing.value("reason", std::string("?")), ""});
  findings.push_back({"interface", host.reason_no_testbed.empty(), host.reason_no_testbed.empty() ? "rtnetlink" : host.reason_no_testbed, ""});
  return findings;
}

std::vector<Finding> advice(const Json& facts) {
  std::vector<Finding> findings;
  cpu_set_t cpus;
  const int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
  findings.push_back({"cores", count >= 2, fmt::format("{} for this process", count),
                      count >= 2 ? "" : "client and server share a core: set placement.server=[0] and read latency with care"});
  const Json cpu = facts.value("cpu", Json::object());
  const std::string governor = cpu.value("governor", Json("missing")).is_string() ? cpu["governor"].get<std::string>() : "?";
  const bool steady = governor == "performance" || governor.starts_with("missing");
  findings.push_back({"governor", steady, governor, steady ? "" : "scripts/tune-host --apply"});
  const Json clocksource = facts.value("clocksource", Json("?"));
  const bool fast = clocksource == "tsc" || clocksource == "kvm-clock" || clocksource == "arch_sys_counter";
  findings.push_back({"clocksource", fast, clocksource.is_string() ? clocksource.get<std::string>() : "?",
                      fast ? "" : "clock reads cost a system call; boot with clocksource=tsc if it is stable"});
  const Json vm = facts.value("virtual_machine", Json("none"));
  const bool bare = !vm.is_string() || vm == "none" || vm == "no";
  findings.push_back({"machine", bare, vm.is_string() ? vm.get<std::string>() : vm.dump(),
                      bare ? "" : "a virtual machine: expect noise; compare within one run only"});
  return findings;
}

// `text` after `first`, wrapped at words so that lines fit 100 columns; further lines are indented.
void print_wrapped(const std::string& first, size_t indent, const std::string& text) {
  const size_t room = 100 - indent;
  std::string line;
  bool continued = false;
  const auto flush = [&] {
    fmt::print("{}{}\n", continued ? std::string(indent, ' ') : first, line);
    continued = true;
    line.clear();
  };
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > room) flush();
    line += (line.empty() ? "" : " ") + word;
  }
  flush();
}

void print(const char* title, const std::vector<Finding>& findings) {
  fmt::print("{}\n", title);
  size_t width = 12;
  for (const Finding& f : findings) width = std::max(width, f.name.size());
  for (const Finding& f : findings) {
    const size_t indent = 9 + width;
    print_wrapped(fmt::format("  {}  {:<{}}  ", f.good ? "yes" : "no ", f.name, width), indent, f.text);
    if (!f.fix.empty()) print_wrapped(std::string(indent, ' ') + "→ ", indent + 2, f.fix);
  }
}

}  // namespace

CommandBody declare_doctor(CLI::App& app) {
  struct Options {
    std::string testbed = "netns";
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("--testbed", options->testbed, "netns")->capture_default_str();
  app.add_flag("--json", options->json, "as JSON");
  return [options]() -> Expected<int> {
    if (options->testbed != "netns") return bad_input("--testbed " + options->testbed, "not in this build yet", "use --testbed netns");
    std::string why;
    const Privilege privilege = testbed_privilege(&why);
    const Host host = enter_testbed_host();
    const char* how = privilege == Privilege::enough ? "as this user" : privilege == Privilege::through_user_namespace ? "in a user namespace" : "no";
    const std::vector<Finding> testbed = {{"netns", host.reason_no_testbed.empty(), host.reason_no_testbed.empty() ? how : host.reason_no_testbed, ""}};
    const auto transports = transport_findings(host), probes = probe_findings(host), tuning = advice(environment("lo"));
    if (options->json) {
      fmt::print("{}\n", Json{{"testbed", to_json(testbed)}, {"transports", to_json(transports)}, {"probes", to_json(probes)}, {"tuning", to_json(tuning)}}.dump(2));
    } else {
      print("testbed", testbed);
      print("transports", transports);
      print("probes", probes);
      print("tuning", tuning);
    }
    const bool any = std::any_of(transports.begin(), transports.end(), [](const Finding& f) { return f.good; });
    return any ? 0 : 4;
  };
}

}  // namespace fsbl
