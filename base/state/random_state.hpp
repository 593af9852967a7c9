#pragma once
// A stream of random numbers in an archive.
#include <array>
#include <sstream>

#include "base/random.hpp"
#include "base/state/archive.hpp"

namespace hearsay {

/// What `random` draws next. In numbers, as the standard writes it: read as it is, it would take the next number from
/// wherever the file says.
inline void random_state(Archive& archive, Random& random) {
  constexpr const char* name = "random numbers";
  std::array<std::uint64_t, std::mt19937_64::state_size + 1> numbers{};  // and the position of the next one
  std::stringstream text;
  if (!archive.loads()) {
    text << random.engine();
    for (std::uint64_t& number : numbers) text >> number;
  }
  archive.values(name, std::span<std::uint64_t>(numbers));
  if (!archive.loads()) return;
  if (numbers.back() > std::mt19937_64::state_size) archive.refuse(name, "go on beyond their end");
  for (const std::uint64_t number : numbers) text << number << ' ';
  text >> random.engine();
}

}  // namespace hearsay
