// Fuzz target: no byte stream may crash the frame parser or the request reader, or make it allocate past the limit.
#include "harness/protocol/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fsbl::FrameParser parser;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t half = size / 2;
  for (std::string_view part : {bytes.substr(0, half), bytes.substr(half)}) {
    parser.feed(part);
    for (;;) {
      auto frame = parser.next();
      if (!frame || !*frame) break;
      if (auto request = fsbl::parse_request(**frame)) (void)fsbl::error_from_json(*request);
    }
  }
  return 0;
}
