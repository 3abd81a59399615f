// One subcommand of `fsbl`: a name, a line of help, and a function that declares its options on a CLI11 app and
// returns what runs once they are parsed. main.cpp holds the table; only main() exits.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "harness/core/error.h"

namespace fsbl {

// The exit status on success paths; an Error becomes exit_code(kind) with its message on stderr.
using CommandBody = std::function<Expected<int>()>;

struct Command {
  const char* name;
  const char* help;
  CommandBody (*declare)(CLI::App& app);
};

CommandBody declare_run(CLI::App& app);
CommandBody declare_doctor(CLI::App& app);
CommandBody declare_list(CLI::App& app);
CommandBody declare_report(CLI::App& app);

// `fsbl completion bash`: from the table itself, so that it can't fall behind.
std::string bash_completion(const CLI::App& app);

}  // namespace fsbl
