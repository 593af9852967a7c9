#include "runtime/exchange/neighbour/compressed.hpp"

#include "runtime/exchange/neighbour/link/sizes.hpp"

namespace hearsay {

CompressedGossip read_compressed(Config& exchange, Config& root, std::string_view why_not, double share) {
  read_lockstep(exchange, why_not);
  CompressedGossip its;
  const double gamma = exchange.real("gamma", 0.5, Range::fraction_above_zero(),
                                     "γ: step along the differences of copies; smaller for lower densities");
  its.mixing = make_difference(static_cast<float>(share * gamma));
  Config sparsify = root.section("sparsify");
  its.compressor =
      std::make_shared<const Sparsifier>(read_sparsifier(sparsify, {.per_segment = true, .scope_is_fixed = true}));
  exchange.require(!counts_in_steps(*its.compressor), "name",
                   "a dead zone is for single values as events, which are eventgrad's (trigger: value_events): take "
                   "another sparsify.quantiser");
  return its;
}

std::optional<LinearIteration> linear_gossip(const CompressedGossip& gossip, LinearIteration iteration) {
  if (!gossip.compressor->dense) return std::nullopt;
  iteration.step = gossip.mixing->step();
  iteration.closes = 1.0 / gossip.compressor->codec->sends_to_settle();
  return iteration;
}

}  // namespace hearsay
