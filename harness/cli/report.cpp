#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/report_tool.h"
#include "harness/result/model.h"

namespace fsbl {

CommandBody declare_report(CLI::App& app) {
  struct Options {
    std::string result, formats = "text", out;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("RESULT", options->result, "a result file, or a folder with one (results/latest)")->required();
  app.add_option("--format", options->formats, "text (to stdout), or a list of md,csv,json (to files)")->capture_default_str();
  app.add_option("--out", options->out, "folder for the files; default: beside the result");
  return [options]() -> Expected<int> {
    FSBL_ASSIGN(const auto file, result_file(options->result));
    std::string out = options->out;
    if (out.empty() && options->formats != "text") out = file.parent_path().string();
    FSBL_ASSIGN(const std::string text, run_report_tool(file, options->formats, out));
    fmt::print("{}", text);
    return 0;
  };
}

}  // namespace fsbl
