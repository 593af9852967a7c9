#pragma once
// Compressed tracking of a momentum, for beer, which is it with β = 0.
#include <memory>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// β in [0, 1). Reads `exchange.schedule`, which is lockstep, `exchange.gamma`, and the section `sparsify`.
std::unique_ptr<ExchangePlan> compressed_tracking_plan(Config& exchange, Config& root, double momentum);

}  // namespace hearsay
