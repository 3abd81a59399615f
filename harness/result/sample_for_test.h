// A made-up but realistic result, the same on every call: what the tests of readers, tables and plots start
// from. reports/testdata/sample holds it as files; FSBL_WRITE_SAMPLE=1 result_test writes them anew.
#pragma once
#include "harness/result/model.h"

namespace fsbl {

// Two scenarios (fsbl/latency: 64 KiB and 1 MiB; fsbl/throughput: 1, 10 and 100 streams), plaintext,
// wireguard-go and mtls measured in 3 blocks, five transports unavailable with reasons, one invalid round.
Result sample_result();

}  // namespace fsbl
