#include "harness/core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace fsbl {

void log_start(const std::string& process_name) {
  auto logger = std::make_shared<spdlog::logger>(process_name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%n: %l: %v");
  const char* level = std::getenv("FSBL_LOG");
  logger->set_level(level ? spdlog::level::from_str(level) : spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void log_error(const std::string& text) { spdlog::default_logger_raw()->error("{}", text); }
void log_warning(const std::string& text) { spdlog::default_logger_raw()->warn("{}", text); }
void log_info(const std::string& text) { spdlog::default_logger_raw()->info("{}", text); }
void log_debug(const std::string& text) { spdlog::default_logger_raw()->debug("{}", text); }

}  // namespace fsbl
