#include "runtime/exchange/neighbour/link/gains.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "base/error.hpp"

namespace hearsay {

void EdgeGains::set(std::span<const float> gains) {
  own.assign(gains.begin(), gains.end());
  for (auto* values : {&said, &said_next, &heard, &larger}) values->resize(gains.size());
}

void EdgeGains::forget() {
  for (auto* values : {&said, &said_next, &heard, &larger}) std::ranges::fill(*values, 0.0F);
}

std::uint64_t EdgeGains::bits(SegmentId s) const { return none() ? 0 : std::bit_cast<std::uint32_t>(own[s]) >> 16; }

void EdgeGains::state(Archive& archive, std::size_t segments) {
  for (auto* values : {&own, &said, &said_next, &heard, &larger}) {
    archive.list("gains of an edge", *values, segments);
    if (!values->empty() && values->size() != segments) archive.refuse("gains of an edge", "are not of all segments");
    if (values->empty() != own.empty()) archive.refuse("gains of an edge", "are there in part");
  }
}

float gain_in(std::uint64_t bits) {
  const auto gain = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  if (gain >= 0.0F && std::isfinite(gain)) return gain;
  throw CommunicationError("a parameter says that a gradient moves it by " + std::to_string(gain));
}

}  // namespace hearsay
