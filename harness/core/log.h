// Log lines for people, on stderr. Levels by what the reader must do: error (act), warning (look), info (read
// if you like), debug (only with FSBL_LOG=debug). Never on the hot path; never a secret.
#pragma once
#include <string>

namespace fsbl {

void log_start(const std::string& process_name);  // once per process; reads FSBL_LOG
void log_error(const std::string& text);
void log_warning(const std::string& text);
void log_info(const std::string& text);
void log_debug(const std::string& text);

}  // namespace fsbl
