#include "apps/shared/configuration.hpp"

#include <cstdio>

#include "apps/shared/launch.hpp"

namespace hearsay {

void say_notes(const Config& config) {
  if (launched_rank() != 0) return;
  for (const std::string& note : config.notes()) std::fprintf(stderr, "note: %s\n", note.c_str());
}

}  // namespace hearsay
