#pragma once
// exchange.in_flight: how many packets of an edge asynchronous ranks may have under way.
#include <cstddef>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// Reads it; `usual` if it is not given. Lockstep has no use for it.
std::size_t read_in_flight(Config& exchange, Schedule schedule, std::size_t usual = 1);

}  // namespace hearsay
