#pragma once
// What was measured of the neighbour path's accuracy against its bytes, and which configuration follows from it.
#include <string>
#include <string_view>
#include <vector>

namespace hearsay {

/// Whether every rank sees the same distribution of examples, or some classes only.
enum class Shares { alike, unlike };

/// Fractions.
struct Reached {
  double accuracy = 0.0;  ///< of the averaged model
  double worst = 0.0;     ///< of the worst rank's
  double bytes = 0.0;     ///< of D-PSGD's
};

/// A configuration of the neighbour path, and what it reached.
struct MeasuredChoice {
  std::string_view name;                         ///< as in docs/results/tables/skew.md, where it is corrected
  std::string_view exchange, trigger, sparsify;  ///< these sections
  Reached unlike, alike;

  const Reached& reached(Shares shares) const { return shares == Shares::unlike ? unlike : alike; }
  /// KEY=VALUE, to be set on top of a configuration.
  std::vector<std::string> settings() const;
};

/// A budget of bytes is met to within this factor: seeds differ by as much.
inline constexpr double within_budget = 1.02;

/// What choices were measured beside.
Reached plain_dpsgd(Shares shares);
double all_reduce_accuracy();  // whatever the shares are: it trains on all of them at once

/// The most accurate of those that need at most this fraction of D-PSGD's bytes; the cheapest if none does.
const MeasuredChoice& best_choice(double bytes_fraction, Shares shares);

}  // namespace hearsay
