#pragma once
// What is known of an exchange's stability before it runs: its margin.
#include <optional>
#include <string>

#include "base/ids.hpp"

namespace hearsay {

/// η is the learning rate and L the largest curvature of the ranks' losses. Steps of ηL < most_step are stable.
struct Stability {
  enum class Claim {
    sharp,     ///< longer steps are not stable
    at_least,  ///< longer steps may be
    if_equal   ///< it holds where all silences are equal; of others nothing is known
  };

  double most_step = 0.0;  ///< 0: none is
  double alone = 2.0;      ///< what one rank stands without the others
  double halves = 0.0;     ///< iterations in which mixing alone halves a distance between ranks; +∞: it does not
  Claim claim = Claim::sharp;
  /// The longest silence for which that holds, in iterations; nothing: any that the trigger can have.
  std::optional<Iteration> silence{};
};

/// In a sentence, for a report. Nothing: not known.
std::string stability_text(const std::optional<Stability>& stability);

}  // namespace hearsay
