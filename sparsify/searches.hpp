#pragma once
// What a selector does with a run of values, as numbers: enough for a device to find the same positions.
#include <array>
#include <cstddef>
#include <cstdint>

namespace hearsay {

/// - `largest`: the k values of largest magnitude, ties by lower position;
/// - `bisection`, `sample`, `chunks`: as the files of `mstopk`, `sampled` and `chunked` say.
enum class SearchKind { none, largest, bisection, sample, chunks };

/// Random numbers as the generator gives them, of which the first usable one counts (usable_below in base/random.hpp):
/// all of them are refused once in 2^256 calls or less.
using Draws = std::array<std::uint64_t, 8>;

/// One call of `Selector::select`.
struct Search {
  SearchKind kind = SearchKind::none;
  std::uint32_t steps = 0;                        ///< of a bisection
  Draws draws{};                                  ///< of a bisection: where its slice begins
  std::uint64_t first = 0, stride = 1, rank = 0;  ///< of a sample: its values, and its threshold's place; stride 1: the
                                                  ///< k largest are searched at once
  std::uint64_t chunk = 0;                        ///< values that compete with each other
};

// With more or fewer than these a sample has misled (lin2018dgc).
constexpr bool too_many(std::uint64_t count, std::uint64_t k) { return 10 * count > 13 * k; }
constexpr bool too_few(std::uint64_t count, std::uint64_t k) { return 10 * count < 8 * k; }

/// ⌊k · end / n⌋: how many of k values lie before `end` of n where all chunks have their share. Of fewer than 2³²
/// values the product fits.
constexpr std::uint64_t share_before(std::uint64_t end, std::uint64_t k, std::uint64_t n) { return k * end / n; }

}  // namespace hearsay
