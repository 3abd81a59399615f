// libFuzzer target: any text either is refused with a reason or decodes to a histogram that keeps its
// promises.
#include <cstdint>
#include <cstdlib>

#include "harness/stats/histogram.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto decoded = fsbl::Histogram::decode_base64({reinterpret_cast<const char*>(data), size});
  if (!decoded) {
    if (decoded.error().why.empty()) std::abort();
    return 0;
  }
  const auto median = decoded->quantile(0.5);
  if (median.has_value() != (decoded->count() > 0)) std::abort();
  if (median && (*median < decoded->min() || *median > decoded->max())) std::abort();
  const auto again = fsbl::Histogram::decode_base64(decoded->encode_base64());
  if (!again || again->count() != decoded->count() || again->max() != decoded->max()) std::abort();
  return 0;
}
