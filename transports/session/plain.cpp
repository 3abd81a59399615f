// Session `plain`: TCP as it is.
#include "transports/inert_side.h"
#include "transports/socket/socket_driver.h"

namespace fsbl {

extern const SessionDescriptor session_plain;
const SessionDescriptor session_plain = {
    .name = "plain",
    .summary = "TCP without protection",
    .usable = usable_always,
    .make_side = make_inert_side,
    .make_driver = [](const DriverContext& context) { return SocketDriver::create(context, nullptr); },
};

}  // namespace fsbl
