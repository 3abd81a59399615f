// The tables are made by the Python package fsbl_reports, from the result file alone.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "harness/core/error.h"

namespace fsbl {

// Runs `python3 -m fsbl_reports RESULT --format ... [--out DIR]`; its stdout is returned.
Expected<std::string> run_report_tool(const std::filesystem::path& result, const std::string& formats,
                                      const std::filesystem::path& out);

}  // namespace fsbl
