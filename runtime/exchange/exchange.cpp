#include "runtime/exchange/exchange.hpp"

namespace hearsay {

const Measures& measures_of(Exchange& exchange) {
  static const struct None final : Measures {
  } none;
  const Measures* const measures = exchange.capabilities().measures;
  return measures != nullptr ? *measures : none;
}

void add_residual(Exchange& exchange, std::span<float> block) {
  if (const Residual* const residual = exchange.capabilities().residual) residual->add_residual(block);
}

}  // namespace hearsay
