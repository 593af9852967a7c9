#pragma once
// EventGraD's plan, for algorithms that are made of it (runtime/exchange/outer/).
#include <memory>
#include <string_view>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// Reads what `exchange: {name: eventgrad}` reads, `trigger:` and `sparsify:` included; `usual_mixing` is the rule
/// where none is asked for.
std::unique_ptr<ExchangePlan> eventgrad_plan(Config& exchange, Config& root, std::string_view usual_mixing);

}  // namespace hearsay
