#include "sparsify/bytes.hpp"

#include <limits>
#include <stdexcept>

#include "base/error.hpp"

namespace hearsay {
namespace {

constexpr const char* remedy = ". The packet is damaged, or sender and receiver run different configurations.";

}  // namespace

void refuse_positions(const std::string& coder, std::size_t count, std::size_t n, const std::string& why) {
  throw CommunicationError(coder + " codec, " + std::to_string(count) + " values of " + std::to_string(n) + ": " + why +
                           remedy);
}

void refuse_values(const std::string& quantiser, std::size_t count, const std::string& why) {
  throw CommunicationError(quantiser + " quantiser, " + std::to_string(count) + " values: " + why + remedy);
}

void require_bytes(const char* quantiser, std::size_t count, std::size_t expected, std::size_t came) {
  if (came != expected)
    refuse_values(quantiser, count, std::to_string(came) + " bytes instead of " + std::to_string(expected));
}

float load_level(std::span<const std::byte> bytes, std::size_t at, const char* quantiser, std::size_t count) {
  const auto x = load<float>(bytes, at);
  if (!(x >= 0.0F && x <= std::numeric_limits<float>::max()))
    refuse_values(quantiser, count, "a level of " + std::to_string(x));
  return x;
}

void require_room(const std::string& writer, std::size_t needed, std::size_t room) {
  if (room >= needed) return;
  throw std::logic_error(writer + ": " + std::to_string(needed) + " bytes do not fit into " + std::to_string(room));
}

}  // namespace hearsay
