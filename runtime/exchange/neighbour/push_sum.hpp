#pragma once
// Push-sum: its form that waits is push_sum.cpp, the one that does not push_sum_asynchronous.cpp.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// A segment's w travels with it.
inline std::size_t push_sum_weight(std::size_t) { return 1; }

/// `in_flight`: packets of an edge that may be under way.
std::unique_ptr<ExchangePlan> asynchronous_push_sum(std::size_t in_flight);

/// Says so where a rank's weight settles low: a step on n moves its z by η / w.
std::vector<std::string> push_sum_warnings(const Topology& topology);

}  // namespace hearsay
