#include "runtime/exchange/outer/fragments.hpp"

#include <string>

#include "base/error.hpp"

namespace hearsay {

std::vector<Fragment> fragments_of(const Layout& layout, std::size_t count, Iteration local_steps) {
  if (layout.count() < count)
    throw ConfigError("exchange.fragments: " + std::to_string(count) + ", but the model has " +
                      std::to_string(layout.count()) +
                      " tensors, and a fragment has whole tensors; use that many fragments or fewer");
  std::vector<Fragment> fragments;
  SegmentId next = 0;
  for (std::size_t f = 0; f < count; ++f) {
    const std::size_t wanted_end = layout.size() * (f + 1) / count, segments_left = count - f - 1;
    Fragment fragment{.offset = layout[next].offset,
                      .segments = {.first = next},
                      .ends = static_cast<Iteration>(f + 1) * local_steps / static_cast<Iteration>(count)};
    // A segment is of the fragment that has its middle; every later fragment must find one, too.
    do {
      fragment.length += layout[next].length;
      fragment.segments.last = next++;
    } while (layout.count() - next > segments_left &&
             (segments_left == 0 || layout[next].offset + layout[next].length / 2 < wanted_end));
    fragments.push_back(fragment);
  }
  return fragments;
}

}  // namespace hearsay
