#include "base/config/seed.hpp"

namespace hearsay {

std::uint64_t read_seed(Config& root) {
  return static_cast<std::uint64_t>(
      root.integer("seed", 1, Range::at_least(0), "every random number of the run comes from it"));
}

}  // namespace hearsay
