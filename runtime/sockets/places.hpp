#pragma once
// The numbers that a job holds for those who come later, and the keys by which they are found where members meet.
#include <optional>
#include <string>

namespace hearsay::sockets {

/// The numbers that are held for those who come later.
struct Places {
  int first = 0, count = 0;
  std::string opening{};        ///< another one for each job, so that nothing is taken for its own that is not
  std::string configuration{};  ///< a hash
};

/// All keys but the first name the opening.
inline constexpr const char *places_key = "places", *claim_prefix = "claim-", *inside_prefix = "inside-";
/// The keys of a number that somebody takes for good, and of one whose process lets others in.
std::string claim_key(const Places& places, int number);
std::string inside_key(const Places& places, int number);

std::string text_of_places(const Places& places);
/// Nothing where the text is none, or does not say places.
std::optional<Places> read_places(const std::optional<std::string>& text);

}  // namespace hearsay::sockets
