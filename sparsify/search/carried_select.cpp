#include "sparsify/search/carried_select.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "sparsify/magnitude.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

constexpr double first_room = 1.5, least_room = 1.2, most_room = 16.0, relax = 0.98;
constexpr float noise = 1.05F;  // growth of the k-th value that says nothing
constexpr float fastest_growth = 2.0F;

void add(std::span<float> values, std::span<const float> addend, float scale) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += scale * addend[i];
}

/// The level that the last call's cut suggests for the next one, a steady growth of the k-th value allowed for.
float next_level(const Cut& cut, float kth_before) {
  const auto level = std::bit_cast<float>(cut.level), kth = std::bit_cast<float>(cut.kth);
  const float growth = kth_before > 0.0F ? kth / kth_before : 1.0F;
  return growth > noise ? std::min(growth, fastest_growth) * level : level;
}

std::size_t wanted_of(double room, std::size_t k, std::size_t n) {
  return std::min(n, static_cast<std::size_t>(room * static_cast<double>(k)) + 16);
}

}  // namespace

std::size_t CarriedSelect::most_wanted(std::size_t k, std::size_t n) { return wanted_of(most_room, k, n); }

void CarriedSelect::add_and_select(std::span<float> values, std::span<const float> addend, float scale, std::size_t k,
                                   std::vector<std::uint32_t>& indices) {
  const std::size_t n = values.size();
  require_selectable(k, n);
  Memory& memory = memories_.try_emplace(values.data(), Memory{.room = first_room}).first->second;
  const bool aimed = memory.level > 0.0F && memory.k == k;
  const auto wanted = [&] { return wanted_of(memory.room, k, n); };
  bool hit = false;
  if (aimed) {
    const std::size_t most = std::min(n, 2 * wanted() + 1024);
    hit = candidates_.add_and_collect(values, addend, scale, magnitude_bits(memory.level), most) &&
          candidates_.size() >= k;
    memory.room = hit ? std::max(least_room, relax * memory.room) : std::min(most_room, 2.0 * memory.room);
  } else {
    add(values, addend, scale);
  }
  memory.level = 0.0F;
  if (k == 0 || k == n) {
    require_finite(values);
    all_positions(k, indices);
    return;
  }
  if (!hit) search_.gather(values, wanted(), candidates_);
  const Cut cut = candidates_.keep_largest(k, wanted());
  if (cut.largest >= infinity_bits) require_finite(values);  // throws, with the position
  memory.level = next_level(cut, std::exchange(memory.kth, std::bit_cast<float>(cut.kth)));
  memory.k = k;
  const auto kept = candidates_.positions();
  indices.assign(kept.begin(), kept.end());
}

}  // namespace hearsay
