#pragma once
// EventGraD, for algorithms that are made of it: dpsgd, which always fires, and those of runtime/exchange/outer/.
#include <memory>
#include <optional>

#include "runtime/exchange/neighbour/plan.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {

struct EventGradSettings {
  LinkOptions link{};
  std::shared_ptr<const MixingRule> mixing{};
  CorrectionPlan correction{};
  std::optional<TriggerPlan> trigger{};            ///< nothing: every segment fires always, and no norm is taken
  std::shared_ptr<const Sparsifier> sparsifier{};  ///< null: segments travel whole
  std::optional<double> bytes{};                   ///< of D-PSGD's: where segments are events
};
std::unique_ptr<ExchangePlan> eventgrad_plan(const EventGradSettings& settings, const ExchangeLaws& laws);

/// Reads what `exchange: {name: eventgrad}` reads, `trigger:` and `sparsify:` included, but for `bytes`, the budget.
std::unique_ptr<ExchangePlan> eventgrad_plan(Config& exchange, Config& root, std::optional<double> bytes = {});

}  // namespace hearsay
