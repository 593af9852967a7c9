#pragma once
// A ring position, or a number of 32 bits, as one rank writes it into another's memory: a word that tells whether it is
// whole.
#include <cstdint>
#include <optional>

namespace hearsay {

/// Positions that are written so are multiples of this.
inline constexpr std::uint64_t position_step = 64;
/// How far apart two positions may be that a word tells apart, in bytes.
inline constexpr std::uint64_t position_range = position_step << 32;

/// MurmurHash3's finaliser (Appleby): a bijection of 32 bits in which every bit depends on every bit; 0 for 0.
constexpr std::uint32_t mixed_bits(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bU;
  x = (x ^ (x >> 13)) * 0xc2b2ae35U;
  return x ^ (x >> 16);
}

/// The position's steps modulo 2³² and, above them, their `mixed_bits`; 0 for 0, so that fresh memory says 0.
constexpr std::uint64_t word_of_position(std::uint64_t count) {
  const auto steps = static_cast<std::uint32_t>(count / position_step);
  return std::uint64_t{mixed_bits(steps)} << 32 | steps;
}

/// The position that `word` says, which lies in [first, last], less than position_range apart and multiples of
/// position_step. Nothing where the word says no such position: it is torn. Some bytes of one word and the rest of
/// another one never agree if they are its halves, else for one choice of bytes in 2³².
constexpr std::optional<std::uint64_t> position_of_word(std::uint64_t word, std::uint64_t first, std::uint64_t last) {
  const auto steps = static_cast<std::uint32_t>(word);
  if (static_cast<std::uint32_t>(word >> 32) != mixed_bits(steps)) return std::nullopt;
  const auto ahead = static_cast<std::uint32_t>(steps - static_cast<std::uint32_t>(first / position_step));
  const std::uint64_t count = first + position_step * ahead;
  return count <= last ? std::optional(count) : std::nullopt;
}

/// A number and, above it, its complement: fresh memory, 0, is none.
constexpr std::uint64_t whole_word(std::uint32_t value) { return value | std::uint64_t{~value} << 32; }

/// The number in it; nothing where the word is not whole.
constexpr std::optional<std::uint32_t> value_of_word(std::uint64_t word) {
  const auto value = static_cast<std::uint32_t>(word);
  return whole_word(value) == word ? std::optional(value) : std::nullopt;
}

}  // namespace hearsay
