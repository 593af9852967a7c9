#include "runtime/replica/finite.hpp"

#include <algorithm>
#include <string>

#include "sparsify/sparsify.hpp"

namespace hearsay {

void name_segment(const Layout& layout, std::size_t offset, std::span<const float> values, std::string_view what,
                  const DivergenceError& error) {
  const std::size_t end = offset + values.size();
  for (const Segment& segment : layout.segments()) {
    const std::size_t from = std::max(segment.offset, offset), to = std::min(segment.offset + segment.length, end);
    if (from >= to) continue;
    try {
      require_finite(values.subspan(from - offset, to - from));
    } catch (const DivergenceError& found) {
      throw DivergenceError(std::string(what) + " of parameter '" + segment.name + "': " + found.finding);
    }
  }
  throw error;
}

void require_finite_gradients(const Layout& layout, std::size_t offset, std::span<const float> values) {
  try {
    require_finite(values);
  } catch (const DivergenceError& error) {
    name_segment(layout, offset, values, "gradient", error);
  }
}

void require_finite_sum(const Layout& layout, std::size_t offset, std::span<const float> values) {
  try {
    require_finite(values);
  } catch (const DivergenceError& error) {
    name_segment(layout, offset, values, "sum of the ranks' values, each of them finite,", error);
  }
}

}  // namespace hearsay
