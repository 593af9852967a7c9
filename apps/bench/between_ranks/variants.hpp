#pragma once
// Every exchange of the table, in the variants that `hearsay plan` and `hearsay bench exchanges` show.
#include <memory>
#include <string>
#include <vector>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// An exchange with its defaults, but for a density where it is sparse and a trigger that always fires.
struct ExchangeVariant {
  std::string name, yaml;
};
std::vector<ExchangeVariant> exchange_variants(double density);
std::unique_ptr<ExchangePlan> plan_variant(const ExchangeVariant& variant);

}  // namespace hearsay
