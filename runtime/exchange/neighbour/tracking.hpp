#pragma once
// What gradient_tracking and momentum_tracking share: they differ by β alone.
#include <memory>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// x_i and y_i travel; u_i ← β u_i + g_i;  y_i ← Σ_j w_ij y_j + u_i(k) − u_i(k − 1);  g_i becomes y_i. β in [0, 1).
/// Reads `exchange.schedule`, which is lockstep.
std::unique_ptr<ExchangePlan> tracking_plan(Config& exchange, double momentum);

}  // namespace hearsay
