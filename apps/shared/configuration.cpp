#include "apps/shared/configuration.hpp"

#include <cstdio>

#include "apps/shared/launch.hpp"
#include "apps/shared/output.hpp"

namespace hearsay {

void say_notes(const Config& config) {
  if (launched_rank() != 0) return;
  for (const std::string& note : config.notes()) say("note:", note);
}

}  // namespace hearsay
