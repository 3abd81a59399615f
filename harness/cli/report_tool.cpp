#include "harness/cli/report_tool.h"

#include <fmt/format.h>

#include "harness/core/file.h"
#include "harness/core/process.h"

namespace fsbl {

Expected<std::string> run_report_tool(const std::filesystem::path& result, const std::string& formats,
                                      const std::filesystem::path& out) {
  const std::filesystem::path package = data_dir() / "reports";
  std::vector<std::string> argv = {"/usr/bin/env", "PYTHONPATH=" + package.string(), "PYTHONDONTWRITEBYTECODE=1",
                                   "/usr/bin/python3", "-m", "fsbl_reports", result.string(), "--format", formats};
  if (!out.empty()) argv.insert(argv.end(), {"--out", out.string()});
  FSBL_ASSIGN(const CommandOutput output, run_command(argv, 120'000'000'000, 64 << 20));
  if (output.status == 0) return output.out;
  std::string why = output.err;
  while (!why.empty() && why.back() == '\n') why.pop_back();
  if (output.status == 2) return bad_input("report " + result.string(), why);
  return fault("report " + result.string(), fmt::format("exit {}: {}", output.status, why),
               output.status == 127 ? "apt-get install python3" : "");
}

}  // namespace fsbl
