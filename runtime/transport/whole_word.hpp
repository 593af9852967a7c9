#pragma once
// A number of 32 bits as one rank writes it into another's memory: a word that says whether it is whole, its upper half
// being the lower one's complement. Fresh memory, 0, is none.
#include <cstdint>
#include <optional>

namespace hearsay {

constexpr std::uint64_t whole_word(std::uint32_t value) { return value | std::uint64_t{~value} << 32; }

/// The number in it; nothing where the word is not whole.
constexpr std::optional<std::uint32_t> value_of_word(std::uint64_t word) {
  const auto value = static_cast<std::uint32_t>(word);
  return whole_word(value) == word ? std::optional(value) : std::nullopt;
}

}  // namespace hearsay
