#pragma once
// A budget of bytes for events, f of what D-PSGD sends along the same graph.
// Events of single values: f stands for settings that were measured to need about f. Nothing follows the bytes during a
// run. A threshold that grew when ranks move apart would make errors relative; a rank that rested when it had sent more
// than others would fall silent where it has most news. Runs diverge by either, with the drift correction that is worth
// most.
// Events of segments: a rank that has sent more rests. Changes stay in x − x̂ and go later.
//   iteration k has events if  bytes posted before it ≤ f · 4 n d · (k + 1)     d: neighbours
// So a rank sends at most its budget and one packet an edge.
// Own rule. Cost: a comparison an iteration.
#include <cstdint>
#include <optional>

#include "base/config/config.hpp"
#include "base/ids.hpp"
#include "base/state/archive.hpp"
#include "runtime/replica/layout.hpp"

namespace hearsay {

class ByteBudget {
 public:
  /// `fraction`: f, in (0, 1]. Throws ConfigError where so little is not even packets that say nothing.
  ByteBudget(double fraction, const Layout& layout, std::size_t neighbours);

  /// Whether iteration k may have events.
  bool allows(Iteration k) const {
    return static_cast<double>(posted_) <= each_iteration_ * static_cast<double>(k + 1);
  }
  /// All bytes that this rank has posted since it began, or was loaded.
  void posted(std::uint64_t bytes) { posted_ = before_ + bytes; }
  void state(Archive& archive);

 private:
  double each_iteration_;     // bytes
  std::uint64_t before_ = 0;  // posted by the jobs that this one goes on from
  std::uint64_t posted_ = 0;
};

/// Reads `exchange.bytes`: f, or nothing. With it `trigger` is value_events unless the document has another one, and
/// then the settings that were measured become defaults of keys that are read later; a note says which they are.
std::optional<double> read_byte_budget(Config& exchange, Config& root);

/// What was measured to need `bytes` of D-PSGD's, between measurements by the logarithm of the bytes.
struct EventSettings {
  double bytes, horizon, dead_zone, strength;
};
EventSettings settings_for(double bytes);

}  // namespace hearsay
