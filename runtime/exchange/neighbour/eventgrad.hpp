#pragma once
// EventGraD's plan, for algorithms that are made of it (runtime/exchange/outer/).
#include <memory>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// Reads what `exchange: {name: eventgrad}` reads, `trigger:` and `sparsify:` included.
std::unique_ptr<ExchangePlan> eventgrad_plan(Config& exchange, Config& root);

}  // namespace hearsay
