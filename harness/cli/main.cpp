// fsbl: the command line. stdout is the answer, stderr is progress and log; exit codes as in README.md.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "fsbl_version.h"
#include "harness/cli/command.h"
#include "harness/core/log.h"

namespace fsbl {
namespace {

constexpr Command kCommands[] = {
    {"run", "measure transports as scenarios say", declare_run},
    {"report", "tables and files from a result", declare_report},
    {"doctor", "what this host can run, with reason and fix", declare_doctor},
    {"list", "transports, tunnels, sessions, engines, probes, scenarios", declare_list},
};

int run_command_line(int argc, char** argv) {
  CLI::App app{"fsbl: what zero-trust transports cost, and proof of what they did", "fsbl"};
  app.set_version_flag("--version", fmt::format("fsbl {} ({}{})", FSBL_VERSION, FSBL_COMMIT, FSBL_DIRTY ? ", modified" : ""));
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 regression or verification failed, 2 bad usage or input, 3 inconclusive,\n"
             "4 this host can't, 5 internal, testbed or invalid-round failure, 130 cancelled.\n"
             "`fsbl COMMAND --help` has each command's options.");
  std::vector<std::pair<CLI::App*, CommandBody>> bodies;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    bodies.emplace_back(sub, command.declare(*sub));
  }
  CLI::App* completion = app.add_subcommand("completion", "shell completion: eval \"$(fsbl completion bash)\"");
  std::string shell = "bash";
  completion->add_option("SHELL", shell, "bash (zsh: run bashcompinit first)")->check(CLI::IsMember({"bash"}));

  if (argc > 1 && argv[1][0] != '-') {  // CLI11 would not name it
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    const auto is_meant = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (std::none_of(commands.begin(), commands.end(), is_meant)) {
      fmt::print(stderr, "fsbl: unknown command '{}'; see `fsbl --help`\n", argv[1]);
      return 2;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return app.exit(CLI::CallForHelp());
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (completion->parsed()) {
    fmt::print("{}", bash_completion(app));
    return 0;
  }
  for (const auto& [sub, body] : bodies) {
    if (!sub->parsed()) continue;
    const Expected<int> status = body();
    if (status) return *status;
    fmt::print(stderr, "fsbl {}: {}\n", sub->get_name(), status.error().message());
    return exit_code(status.error().kind);
  }
  return 2;
}

}  // namespace
}  // namespace fsbl

int main(int argc, char** argv) {
  fsbl::log_start("fsbl");
  try {
    return fsbl::run_command_line(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fsbl: internal error: %s; please report it\n", error.what());
    return 5;
  }
}
