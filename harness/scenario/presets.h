// Transport names that users type, and the compositions they stand for. Pure data.
#pragma once
#include <span>
#include <string_view>

#include "harness/scenario/model.h"

namespace fsbl {

struct Preset {
  std::string_view name, tunnel, session, engine, summary;
};
std::span<const Preset> presets();
// The composition of a preset, or of "tunnel+session[+engine]" (the way compose() names what has no preset);
// bad_input with the nearest name otherwise. Whether this build has the members is the registry's to say.
Expected<Composition> composition_of(std::string_view name);
// Any composition, named after its parts when no preset has them. A tls session without an engine gets
// openssl.
Composition compose(std::string tunnel, std::string session, std::string engine);

}  // namespace fsbl
