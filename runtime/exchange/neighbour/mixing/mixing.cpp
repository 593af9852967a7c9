#include "runtime/exchange/neighbour/mixing/mixing.hpp"

#include <algorithm>
#include <vector>

namespace hearsay {

bool Mixing::whole() const { return std::ranges::find(segments, std::uint8_t{0}) == segments.end(); }

void add_move(const Mixing& mixing, const Move& move, float scale, std::span<float> block) {
  const MixEdge& edge = mixing.edges[move.edge];
  const auto& [offset, length] = std::pair(mixing.layout[move.segment].offset, mixing.layout[move.segment].length);
  const auto theirs = edge.theirs.subspan(offset, length), ours = edge.ours.subspan(offset, length);
  const auto values = block.subspan(offset, length);
  if (move.crossed_only && edge.crossed[move.segment] == some_values)
    mixing.device.add_difference_at(edge.positions[move.segment], move.weight * scale, theirs, ours, values);
  else
    mixing.device.add_difference(move.weight * scale, theirs, ours, values);
}

void add_moves(const Mixing& mixing, const MixingRule& rule, std::span<float> x) {
  rule.each_move(mixing, [&](const Move& move) { add_move(mixing, move, 1.0F, x); });
}

void by_parts(const Mixing& mixing, std::span<float> x,
              const std::function<void(std::span<const MixEdge> edges, std::span<float> x)>& mix_part) {
  if (mixing.whole()) return mix_part(mixing.edges, x);
  std::vector<MixEdge> edges(mixing.edges.begin(), mixing.edges.end());
  for (SegmentId s = 0; s < mixing.layout.count(); ++s) {
    if (mixing.segments[s] == 0) continue;
    const Segment& segment = mixing.layout[s];
    for (std::size_t e = 0; e < edges.size(); ++e) {
      edges[e].theirs = mixing.edges[e].theirs.subspan(segment.offset, segment.length);
      if (!mixing.edges[e].ours.empty()) edges[e].ours = mixing.edges[e].ours.subspan(segment.offset, segment.length);
    }
    mix_part(edges, x.subspan(segment.offset, segment.length));
  }
}

}  // namespace hearsay
