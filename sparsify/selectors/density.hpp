#pragma once
// The keys that several selectors have, so that they mean the same everywhere.
#include <cstdint>

#include "base/config/config.hpp"

namespace hearsay {

inline double read_density(Config& config) {
  return config.real("density", 0.1, Range::fraction_above_zero(),
                     "fraction of the values that is kept; at least one value is");
}

inline std::uint64_t read_selector_seed(Config& config) {
  return static_cast<std::uint64_t>(config.integer("seed", 0, Range::at_least(0), "of the selector's random numbers"));
}

}  // namespace hearsay
