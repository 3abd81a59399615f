// The names under which scenarios ask for a wrong certificate (tls.client_svid, tls.server_svid).
#pragma once
#include "harness/identity/svid.h"

namespace fsbl {

// "good" and "none" (a certificate that is then not presented) deviate in nothing; an unknown name is bad_input.
Expected<Deviation> deviation_of(std::string_view kind);

}  // namespace fsbl
