#pragma once
// "Did you mean …?"
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearsay {

/// Insertions, deletions, substitutions and swaps of neighbouring characters that turn `a` into `b` (Damerau's
/// distance, every character edited at most once). O(|a|·|b|).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate closest to `name` if a slip of the fingers explains the difference (distance ≤ 2), else "".
std::string nearest(std::string_view name, std::span<const std::string> candidates);

}  // namespace hearsay
