#include "runtime/sockets/places.hpp"

#include <sstream>

#include "base/ids.hpp"

namespace hearsay::sockets {

std::string claim_key(const Places& places, int number) {
  return claim_prefix + places.opening + "-" + std::to_string(number);
}
std::string inside_key(const Places& places, int number) {
  return inside_prefix + places.opening + "-" + std::to_string(number);
}

std::string text_of_places(const Places& places) {
  return std::to_string(places.first) + " " + std::to_string(places.count) + " " + places.opening + " " +
         places.configuration;
}

std::optional<Places> read_places(const std::optional<std::string>& text) {
  Places places;
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  words >> places.first >> places.count >> places.opening;
  if (!words || places.first < 1 || places.count < 1 || places.first + places.count > most_ranks) return std::nullopt;
  words >> places.configuration;
  return places;
}

}  // namespace hearsay::sockets
