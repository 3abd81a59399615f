#include <fmt/format.h>

#include "harness/core/file.h"
#include "harness/result/model.h"

namespace fsbl {
namespace fs = std::filesystem;
namespace {

// Logs lie in the result's folder, wherever a result that was read says they are.
Expected<fs::path> log_path(const fs::path& dir, const std::string& name) {
  const fs::path relative = fs::path(name).lexically_normal();
  if (name.empty() || relative.is_absolute() || *relative.begin() == "..")
    return bad_input("write log '" + name + "'", "not a path inside the result's folder");
  return dir / relative;
}

Expected<> make_folder(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return fault_errno("make folder " + dir.string(), error.value());
  return {};
}

}  // namespace

Expected<> write_result(const fs::path& dir, Result& result) {
  FSBL_TRY(make_folder(dir));
  for (LogFile& log : result.logs) {
    if (log.content.empty() && !log.sha256.empty()) continue;
    FSBL_ASSIGN(const fs::path path, log_path(dir, log.path));
    FSBL_TRY(make_folder(path.parent_path()));
    FSBL_TRY(write_file_atomic(path, log.content));
    log.sha256 = sha256_hex(log.content);
    log.bytes = log.content.size();
  }
  return write_file_atomic(dir / "result.json",
                           to_json(result).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Expected<fs::path> result_file(const fs::path& file_or_dir) {
  std::error_code error;
  const fs::path file = fs::is_directory(file_or_dir, error) ? file_or_dir / "result.json" : file_or_dir;
  if (!fs::exists(file, error))
    return bad_input("read " + file.string(), "no such result", "give a result.json or its folder");
  return file;
}

Expected<Result> read_result(const fs::path& file_or_dir) {
  FSBL_ASSIGN(const fs::path file, result_file(file_or_dir));
  FSBL_ASSIGN(const std::string text, read_file(file));
  FSBL_ASSIGN(const Json json, parse_json(text, file.string()));
  return result_from_json(json, file.string());
}

}  // namespace fsbl
