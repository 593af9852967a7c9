#pragma once
// What exchanges have in common that mix by the differences of copies, to which changes travel compressed: beer, motef
// and cedas.
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/neighbour/linear_iteration.hpp"
#include "runtime/exchange/neighbour/link/options.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

struct CompressedGossip {
  LinkOptions link{.keep_own_copies = true};
  std::shared_ptr<const MixingRule> mixing{};  ///< difference
  std::shared_ptr<const Sparsifier> compressor{};
};

/// Reads `exchange.schedule`, which is lockstep (`why_not` is said to `asynchronous`), `exchange.gamma` in (0, 1], and
/// the section `sparsify`, which may not count in steps. `share`: of γ in a mixing.
CompressedGossip read_compressed(Config& exchange, Config& root, std::string_view why_not, double share = 1.0);

/// `iteration` with the mixing of these. Nothing where only some values travel: which depends on all of x.
std::optional<LinearIteration> linear_gossip(const CompressedGossip& gossip, LinearIteration iteration);

/// Compressed tracking of a momentum β in [0, 1): motef.cpp. Reads what `read_compressed` does.
std::unique_ptr<ExchangePlan> compressed_tracking_plan(Config& exchange, Config& root, double momentum);

}  // namespace hearsay
