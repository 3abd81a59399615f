#include "harness/cli/host.h"

#include "harness/testbed/testbed.h"

namespace fsbl {

Host enter_testbed_host() {
  std::string why;
  const Privilege privilege = testbed_privilege(&why);
  if (privilege == Privilege::through_user_namespace)
    if (const auto entered = enter_user_namespace(); !entered) why = entered.error().message();
  Host host = probe_host();
  host.reason_no_testbed = why;
  return host;
}

}  // namespace fsbl
