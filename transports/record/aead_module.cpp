#include "transports/record/aead_module.h"

#include <dlfcn.h>

#include <filesystem>

#include "fsbl_version.h"
#include "harness/core/file.h"

namespace fsbl {
namespace {

std::filesystem::path module_path(const std::string& name) { return program_path("fsbl-" + name + ".so"); }

constexpr const char* kFix = "install libdpdk-dev and build again (scripts/setup, scripts/run-suite)";

}  // namespace

Expected<> module_is_there(const std::string& name) {
  std::error_code error;
  if (std::filesystem::exists(module_path(name), error)) return {};
  return unavailable("record engine " + name, "its module " + module_path(name).filename().string() + " is not installed: built without DPDK", kFix);
}

Expected<std::unique_ptr<AeadDevice>> open_module_device(const std::string& name, const AeadConfig& config) {
  const std::string what = "load record engine " + name;
  const std::string path = config.module.empty() ? module_path(name).string() : config.module;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return unavailable(what, why ? why : "dlopen failed", kFix);
  }
  const auto* module = static_cast<const AeadModule*>(dlsym(handle, "fsbl_aead_module"));
  if (!module) return fault(what, path + " is no module of fsbl");
  if (std::string(module->build) != FSBL_VERSION " " FSBL_COMMIT)
    return unavailable(what, std::string("the module is of another build: ") + module->build, "build and install all of fsbl together");
  return module->open(config);
}

}  // namespace fsbl
