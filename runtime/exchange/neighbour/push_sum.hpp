#pragma once
// Push-sum: its form that waits is push_sum.cpp, the one that does not push_sum_asynchronous.cpp.
#include <cstddef>
#include <memory>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// `in_flight`: packets of an edge that may be under way.
std::unique_ptr<ExchangePlan> asynchronous_push_sum(std::size_t in_flight);

}  // namespace hearsay
