#include "modules/cryptodev/request.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <memory>
#include <optional>

namespace fsbl {
namespace {

constexpr const char* kPciRoot = "/sys/bus/pci/devices/";

// PCI drivers that may be asked for by name. Which devices they serve is DPDK's knowledge; the vendor and class say
// which ones to let it look at.
struct PciDriver {
  const char* name;
  const char* vendor;                 // as in sysfs
  std::vector<const char*> classes;   // beginnings of the class
  const char* args;                   // without them DPDK takes the device for something else
};
const std::vector<PciDriver>& pci_drivers() {
  static const std::vector<PciDriver> drivers = {
      {"crypto_qat", "0x8086", {"0x0b40", "0x1080"}, ""},
      {"crypto_ccp", "0x1022", {"0x1080"}, ""},
      {"crypto_mlx5", "0x15b3", {"0x0200"}, "class=crypto"},
  };
  return drivers;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return parts;
    begin = comma + 1;
  }
}

bool begins(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

// "0000:3d:00.0" from that or "3d:00.0"; nothing when the text isn't a PCI address.
std::optional<std::string> pci_address(const std::string& text) {
  const std::string full = std::count(text.begin(), text.end(), ':') == 1 ? "0000:" + text : text;
  constexpr std::string_view shape = "xxxx:xx:xx.d";
  if (full.size() != shape.size()) return std::nullopt;
  std::string lower;
  for (size_t i = 0; i < full.size(); ++i) {
    const auto c = static_cast<unsigned char>(full[i]);
    const bool fits = shape[i] == 'x' ? std::isxdigit(c) : shape[i] == 'd' ? c >= '0' && c <= '7' : c == shape[i];
    if (!fits) return std::nullopt;
    lower += static_cast<char>(std::tolower(c));
  }
  return lower;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> pci_devices(const PciDriver& driver) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kPciRoot), closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (!pci_address(name) || first_line(kPciRoot + name + "/vendor") != driver.vendor) continue;
    const std::string kind = first_line(kPciRoot + name + "/class");
    if (std::ranges::any_of(driver.classes, [&](const char* c) { return begins(kind, c); })) found.push_back(name);
  }
  std::ranges::sort(found);
  return found;
}

void add_arg(DeviceRequest& request, const std::string& arg) {
  request.args += (request.args.empty() ? "" : ",") + arg;
}

tl::unexpected<Error> null_refused(const std::string& what) {
  return unavailable(what, "crypto_null does not encrypt: it would be measured as a cipher and be none",
                     "use crypto.device: auto");
}

}  // namespace

bool DeviceRequest::has_arg(const std::string& name) const {
  return std::ranges::any_of(split(args), [&](const std::string& arg) { return begins(arg, name + "="); });
}

std::string auto_driver(Cipher cipher) {
  return cipher == Cipher::chacha20_poly1305 ? "crypto_chacha20_poly1305" : "crypto_aesni_gcm";
}

std::string cipher_name(Cipher cipher) {
  switch (cipher) {
    case Cipher::aes_128_gcm: return "AES-128-GCM";
    case Cipher::aes_256_gcm: return "AES-256-GCM";
    case Cipher::chacha20_poly1305: return "ChaCha20-Poly1305";
  }
  return "?";
}

Expected<DeviceRequest> parse_request(const AeadConfig& config, unsigned instance) {
  DeviceRequest request;
  request.text = config.device;
  const std::string what = "open cryptodev " + config.device;

  std::vector<std::string> parts = split(config.device);
  std::string name = parts.front();
  if (name == "auto") name = auto_driver(config.cipher);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (begins(parts[i], "fsbl_bounce=")) {
      if (parts[i] != "fsbl_bounce=0" && parts[i] != "fsbl_bounce=1")
        return bad_input(what, "'" + parts[i] + "' is no choice", "write fsbl_bounce=0 or fsbl_bounce=1");
      request.bounce = parts[i].back() == '1';
      continue;
    }
    add_arg(request, parts[i]);
  }

  if (const auto address = pci_address(name)) {
    if (access((kPciRoot + *address).c_str(), F_OK) != 0)
      return unavailable(what, "this host has no PCI device " + *address, "lspci -D lists what it has");
    request.pci = {*address};
    return request;
  }
  if (begins(name, "crypto_null")) return null_refused(what);
  if (!begins(name, "crypto_") || name.size() == 7)
    return bad_input(what, "'" + name + "' is neither a DPDK crypto driver (crypto_...) nor a PCI address",
                     "use crypto.device: auto, crypto_openssl, or an address like 0000:3d:00.0");
  request.driver = name;

  for (const PciDriver& driver : pci_drivers()) {
    if (name != driver.name) continue;
    request.pci = pci_devices(driver);
    if (request.pci.empty())
      return unavailable(what, fmt::format("this host has no PCI device that {} could serve (vendor {}, class {}...)",
                                           name, driver.vendor, driver.classes.front()),
                         "use crypto.device: auto for a software driver, or name a PCI address");
    if (*driver.args && !request.has_arg("class")) add_arg(request, driver.args);
    return request;
  }

  if (name != "crypto_scheduler") {
    // ipsec_mb's drivers offer 8 queues unless told otherwise.
    if (config.queues > 8 && !request.has_arg("max_nb_queue_pairs"))
      add_arg(request, fmt::format("max_nb_queue_pairs={}", config.queues));
    return request;
  }
  for (const std::string& arg : split(request.args)) {
    if (begins(arg, "worker=crypto_null")) return null_refused(what);
    if (begins(arg, "worker=")) request.workers.push_back(arg.substr(7));
    if (arg == "mode=multi-core")
      return unavailable(what, "the scheduler's multi-core mode needs cores of its own, and DPDK has none here",
                         "use mode=round-robin, packet-size-distr or fail-over");
  }
  if (request.workers.empty())
    for (int i = 0; i < 2; ++i) {
      request.workers.push_back(fmt::format("{}_{}_w{}", auto_driver(config.cipher), instance, i));
      add_arg(request, "worker=" + request.workers.back());
    }
  if (!request.has_arg("mode")) add_arg(request, "mode=round-robin");
  if (!request.has_arg("ordering")) add_arg(request, "ordering=enable");
  return request;
}

}  // namespace fsbl
