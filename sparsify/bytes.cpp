#include "sparsify/bytes.hpp"

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

void require_room(const std::string& writer, std::size_t needed, std::size_t room) {
  if (room >= needed) return;
  throw std::logic_error(writer + ": " + std::to_string(needed) + " bytes do not fit into " + std::to_string(room));
}

}  // namespace hearsay
