// The table of mixing rules: one declaration and one entry a rule.
#include <array>

#include "runtime/exchange/neighbour/mixing/mixing.hpp"

namespace hearsay {

MixingEntry stale_mixing();
MixingEntry difference_mixing();
MixingEntry arrival_mixing();

std::span<const MixingEntry> mixing_rules() {
  static const std::array entries{stale_mixing(), difference_mixing(), arrival_mixing()};
  return entries;
}

}  // namespace hearsay
