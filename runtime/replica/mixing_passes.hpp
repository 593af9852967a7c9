#pragma once
// The passes that every mixing rule is made of, on the processor.
#include <cstdint>
#include <span>
#include <vector>

namespace hearsay {

/// What of a segment has crossed an edge, by an event of either end, since the last mixing.
enum Crossed : std::uint8_t { nothing = 0, all_values = 1, some_values = 2 };

/// Whose event it was.
enum Ends : std::uint8_t { own_end = 1, other_end = 2, both_ends = own_end | other_end };

/// One edge {i, j} as rank i sees it after iteration k's packets were received. Spans cover the whole replica.
struct MixEdge {
  float weight;                             ///< w_ij
  std::span<const float> theirs;            ///< x̂_j: what i last received of j
  std::span<const float> ours;              ///< x̂_i as j holds it; not read by mix_row
  std::span<const std::uint8_t> crossed{};  ///< a Crossed per segment
  std::span<const std::uint8_t> ends{};     ///< of the events that have crossed, per segment
  /// Per segment the positions in it, ascending, where `some_values` have crossed; both ends know the same.
  std::span<const std::vector<std::uint32_t>> positions{};
  /// Per segment how far a gradient moves i or j, the larger of the two; 0 where neither has said so.
  std::span<const float> gains{};
};

/// x ← w_ii x + Σ_j w_ij x̂_j, the product with one row of W.
void mix_row(float self_weight, std::span<const MixEdge> edges, std::span<float> x, int threads = 1);
/// x ← x + Σ_j step · w_ij (x̂_j − x̂_i), x̂_i as j holds it.
void add_differences(float step, std::span<const MixEdge> edges, std::span<float> x, int threads = 1);
/// x ← x + weight · (theirs − ours) over one range of floats: a single term of it.
void add_difference(float weight, std::span<const float> theirs, std::span<const float> ours, std::span<float> x);

}  // namespace hearsay
