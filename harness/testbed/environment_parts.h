// The parts that environment() puts together. Internal to this layer. Each reads /proc, /sys and harmless
// queries only, and says "missing: reason" where a fact can't be had.
#pragma once
#include <filesystem>
#include <string>

#include "harness/core/error.h"
#include "harness/core/json.h"

namespace fsbl {

// "missing: <reason>", how the environment shows a fact that can't be read.
Json missing_fact(const std::string& reason);
// Trimmed content of a small file; missing, with `absent` or the errno, when it can't be read.
Json file_fact(const std::filesystem::path& path, const std::string& absent = {});

Json cpu_environment();
Json container_environment();
Json virtual_machine_environment();
// {link, irq_affinity} of a device in this thread's network namespace.
Json link_environment(const std::string& link);
Json irq_environment(const std::string& link);

// Parsers, apart for their tests.
// The value of the first "key : value" line in /proc/cpuinfo; empty when there is none.
std::string cpuinfo_value(std::string_view cpuinfo, std::string_view key);
// "[x]" out of "a [x] b"; empty when nothing is bracketed.
std::string bracketed(std::string_view text);
// Options of the kernel command line that affect speed: {name: value}, "" for flags.
Json speed_options(std::string_view cmdline);

}  // namespace fsbl
