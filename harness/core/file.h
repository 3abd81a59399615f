// Whole files in and out.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/core/error.h"

namespace fsbl {

// Reads a whole file; larger than `limit_bytes` is bad_input, unreadable is a fault naming the path.
Expected<std::string> read_file(const std::filesystem::path& path, uint64_t limit_bytes = 1ull << 30);
// Trimmed content of a small /proc or /sys file, or `fallback` when it can't be read.
std::string read_small(const std::filesystem::path& path, const std::string& fallback = {});

// Writes the file whole or not at all: an unnamed file (O_TMPFILE) is written, synced and linked to its name, so
// that a killed process leaves no temporary behind; where the file system lacks O_TMPFILE, or the name exists
// already, through a temporary name and rename.
Expected<> write_file_atomic(const std::filesystem::path& path, std::string_view data, unsigned mode = 0644);

// Folder of the running program's data: ../share/fsbl when installed, the source tree when built in place.
std::filesystem::path data_dir();
// A sibling program: next to this one when built in place, libexec/fsbl when installed.
std::filesystem::path program_path(std::string_view name);

}  // namespace fsbl
