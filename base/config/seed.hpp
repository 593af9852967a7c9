#pragma once
#include <cstdint>

#include "base/config/config.hpp"

namespace hearsay {

/// The key `seed` of the whole configuration: every random number of a run comes from it.
std::uint64_t read_seed(Config& root);

}  // namespace hearsay
