#include "sparsify/sparsify.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "sparsify/magnitude.hpp"

namespace hearsay {

std::size_t kept_count(double density, std::size_t n) {
  const auto rounded = static_cast<std::size_t>(std::llround(density * static_cast<double>(n)));
  return std::min(std::max<std::size_t>(rounded, 1), n);
}

void require_positions(std::size_t n, const std::string& what) {
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  if (n > most)
    throw ConfigError(
        what + " has " + std::to_string(n) + " values, and positions, of 32 bits, tell " + std::to_string(most) +
        " apart; let whole parameters travel (exchange.name: dpsgd or allreduce), or cut its tensors smaller");
}

void Selector::add_and_select(std::span<float> values, std::span<const float> addend, float scale, std::size_t k,
                              std::vector<std::uint32_t>& indices) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += scale * addend[i];
  select(values, k, indices);
}

void refuse_value(std::size_t position, std::size_t n, float value) {
  std::ostringstream message;
  message << "value " << position << " of " << n << " is " << value;
  throw DivergenceError(message.str());
}

bool all_finite(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  return largest < infinity_bits;
}

void require_finite(std::span<const float> values) {
  if (all_finite(values)) return;
  const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  refuse_value(static_cast<std::size_t>(bad - values.begin()), values.size(), *bad);
}

}  // namespace hearsay
