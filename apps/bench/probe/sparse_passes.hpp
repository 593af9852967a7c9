#pragma once
// The two passes over memory that a sparse all-reduce stands or falls with, on one rank, without messages.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearsay {

/// Sum of two lists of `entries`, each with positions of its own, cut to `entries` again: one merge of gTop-k.
struct MergeTiming {
  static constexpr double target_s = 1e-3;
  std::size_t entries = 0;
  int repeats = 0;
  double median_s = 0.0;
  double mean_s = 0.0;
};
MergeTiming measure_merge(std::uint64_t seed, int repeats);

/// r ← r + g; the k largest of r; taken out of r: what error feedback does beside communicating. In turns with r ← r +
/// g alone on a residual of its own, so that a busy machine hits both. Measured in the steady state of a run: 20
/// iterations go before.
struct SelectionTiming {
  static constexpr double target_ratio = 1.5;
  std::size_t values = 0;
  double density = 0.0;
  int repeats = 0;
  double addition_s = 0.0;   ///< median of r ← r + g alone
  double selection_s = 0.0;  ///< median of all three
  double ratio = 0.0;        ///< median of the quotients of neighbouring turns
  double mean_addition_s = 0.0, mean_selection_s = 0.0;
  double reads = 0.0;  ///< Selector::reads
};
/// So many values, of which the selector called so keeps the fraction `density`.
SelectionTiming measure_selection(std::uint64_t seed, int repeats, double density = 0.001,
                                  std::string_view selector = "topk", std::size_t values = 10'000'000);

}  // namespace hearsay
