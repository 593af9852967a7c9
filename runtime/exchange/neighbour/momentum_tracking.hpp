#pragma once
// Momentum tracking, for gradient_tracking, which is it with β = 0.
#include <memory>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// β in [0, 1). Reads `exchange.schedule`, which is lockstep.
std::unique_ptr<ExchangePlan> tracking_plan(Config& exchange, double momentum);

}  // namespace hearsay
