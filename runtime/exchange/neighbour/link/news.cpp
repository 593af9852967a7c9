#include "runtime/exchange/neighbour/link/news.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hearsay {

void EdgeNews::add(SegmentId s, std::span<const std::uint32_t> some) {
  if (crossed[s] == all_values) return;
  crossed[s] = some_values;
  std::vector<std::uint32_t> both;
  std::ranges::set_union(positions[s], some, std::back_inserter(both));
  positions[s] = std::move(both);
}

void EdgeNews::add(SegmentId s, const EdgeNews& other) {
  if (other.crossed[s] == all_values) add_all(s);
  if (other.crossed[s] == some_values) add(s, other.positions[s]);
  ends[s] = static_cast<std::uint8_t>(ends[s] | other.ends[s]);
}

void EdgeNews::state(Archive& archive, const Layout& layout) {
  archive.values("what has crossed", std::span(crossed));
  archive.values("whose events have crossed", std::span(ends));
  for (SegmentId s = 0; s < crossed.size(); ++s) {
    if (crossed[s] > some_values) archive.refuse("what has crossed", "is of no known kind");
    if (ends[s] > both_ends) archive.refuse("whose events have crossed", "is neither end's");
    if (crossed[s] != some_values) {
      positions[s].clear();
      continue;
    }
    archive.list("positions that have crossed", positions[s], layout[s].length);
    require_ascending(archive, "positions that have crossed", positions[s], layout[s].length);
  }
}

}  // namespace hearsay
