// Tunnel `none`: sessions connect over the testbed's link itself.
#include "transports/inert_side.h"

namespace fsbl {

extern const TunnelDescriptor tunnel_none;
const TunnelDescriptor tunnel_none = {
    .name = "none",
    .summary = "no tunnel: sessions run over the link itself",
    .usable = usable_always,
    .make_side = make_inert_side,
};

}  // namespace fsbl
