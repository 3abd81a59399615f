#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <memory>

#include "harness/core/fd.h"
#include "harness/result/model.h"

namespace fsbl {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::string_view data) { EVP_DigestUpdate(context_.get(), data.data(), data.size()); }
  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &size);
    std::string out;
    for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

std::string sha256_hex(std::string_view data) {
  Sha256 digest;
  digest.add(data);
  return digest.hex();
}

Expected<std::string> sha256_file(const std::filesystem::path& path) {
  const std::string what = "digest " + path.string();
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return bad_input(what, errno_text(errno));
  Sha256 digest;
  char chunk[65536];
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return bad_input(what, errno_text(errno));
    if (n == 0) return digest.hex();
    digest.add({chunk, static_cast<size_t>(n)});
  }
}

}  // namespace fsbl
