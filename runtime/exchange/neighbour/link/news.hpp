#pragma once
// What has crossed an edge since it last mixed: by events of either end, whole segments or some of their values.
#include <cstdint>
#include <span>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"

namespace hearsay {

struct EdgeNews {
  explicit EdgeNews(std::size_t segments) : crossed(segments), ends(segments), positions(segments) {}
  void add_all(SegmentId s) { crossed[s] = all_values, positions[s].clear(); }
  /// `some`: ascending positions.
  void add(SegmentId s, std::span<const std::uint32_t> some);
  void add(SegmentId s, const EdgeNews& other);
  void note_end(SegmentId s, Ends end) { ends[s] = static_cast<std::uint8_t>(ends[s] | end); }
  void clear(SegmentId s) { crossed[s] = nothing, ends[s] = 0, positions[s].clear(); }
  void state(Archive& archive, const Layout& layout);

  std::vector<std::uint8_t> crossed;                  ///< per segment nothing, some_values or all_values
  std::vector<std::uint8_t> ends;                     ///< ... by whose events
  std::vector<std::vector<std::uint32_t>> positions;  ///< ... of some values which, ascending
};

}  // namespace hearsay
