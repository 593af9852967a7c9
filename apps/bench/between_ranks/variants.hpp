#pragma once
// Every exchange of the table, in the variants that `hearsay plan` and `hearsay bench exchanges` show.
#include <memory>
#include <string>
#include <vector>

#include "runtime/exchange/exchange.hpp"

namespace hearsay {

/// An exchange with its defaults, but for a density where it is sparse and a trigger that always fires. With
/// `rounds_of_one_step` those that take local steps take one: every iteration is then like the others.
struct ExchangeVariant {
  std::string name, yaml;
};
std::vector<ExchangeVariant> exchange_variants(double density, bool rounds_of_one_step = false);
std::unique_ptr<ExchangePlan> plan_variant(const ExchangeVariant& variant);

}  // namespace hearsay
