#include <fmt/format.h>

#include "harness/cli/command.h"

namespace fsbl {

std::string bash_completion(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands += (commands.empty() ? "" : " ") + sub->get_name();
    std::string options;
    for (const CLI::Option* option : sub->get_options())
      for (const auto& name : option->get_lnames()) options += " --" + name;
    cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), options);
  }
  return fmt::format(R"bash(# bash completion for fsbl
_fsbl() {{
  local words="{} --help --version" command="${{COMP_WORDS[1]}}" current="${{COMP_WORDS[COMP_CWORD]}}"
  [ "$COMP_CWORD" -gt 1 ] && case "$command" in
{}  esac
  if [ "$COMP_CWORD" -gt 1 ] && [ "$command" = run ] && [[ "$current" != -* ]]; then
    words="$(fsbl list scenarios --names 2>/dev/null)"
  elif [ "$COMP_CWORD" -gt 1 ] && [ "$command" = list ] && [[ "$current" != -* ]]; then
    words="transports tunnels sessions engines probes scenarios"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ "${{#COMPREPLY[@]}}" -eq 0 ] && COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _fsbl fsbl
)bash",
                     commands, cases);
}

}  // namespace fsbl
