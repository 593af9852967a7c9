#include "runtime/collectives/ring.hpp"

#include <algorithm>
#include <vector>

namespace hearsay {
namespace {

int around(int index, int size) { return ((index % size) + size) % size; }

Message values_message(std::span<const float> values) {
  return {.bytes = std::as_bytes(values), .payload_bytes = values.size_bytes()};
}

}  // namespace

// Step t: part i − 1 − t travels from i to i + 1, which adds its own. The sum of part p starts at p + 1 and ends at p.
void reduce_scatter(const Group& group, std::span<float> values) {
  const int size = group.size();
  const int next = group.member(around(group.index() + 1, size));
  const int previous = group.member(around(group.index() - 1, size));
  std::vector<float> incoming;
  for (int step = 0; step < size - 1; ++step) {
    const auto leaving = part_of(values.size(), size, around(group.index() - 1 - step, size)).of(values);
    const auto mine = part_of(values.size(), size, around(group.index() - 2 - step, size)).of(values);
    incoming.resize(mine.size());
    group.peers().exchange(next, values_message(leaving), previous, std::as_writable_bytes(std::span(incoming)));
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += incoming[i];
  }
}

void all_gather_parts(const Group& group, std::span<float> values) {
  const int size = group.size();
  const int next = group.member(around(group.index() + 1, size));
  const int previous = group.member(around(group.index() - 1, size));
  for (int step = 0; step < size - 1; ++step) {
    const auto leaving = part_of(values.size(), size, around(group.index() - step, size)).of(values);
    const auto coming = part_of(values.size(), size, around(group.index() - step - 1, size)).of(values);
    group.peers().exchange(next, values_message(leaving), previous, std::as_writable_bytes(coming));
  }
}

void ring_all_reduce(const Group& group, std::span<float> values) {
  reduce_scatter(group, values);
  all_gather_parts(group, values);
}

}  // namespace hearsay
