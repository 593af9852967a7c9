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

namespace {

/// The two buffers of a lane take turns: what has come into one is what leaves next.
class LaneRing {
 public:
  LaneRing(const Group& group, std::span<float> values, Lane& lane) : group_(group), values_(values), lane_(lane) {}

  void reduce_scatter() {
    lane_.fetch(part(group_.index() - 1), leaving_);
    for (int step = 0; step < group_.size() - 1; ++step) {
      lane_.wait(leaving_);  // a sum must be there before it can leave
      pass_on(part(group_.index() - 1 - step), part(group_.index() - 2 - step));
      lane_.add(leaving_, part(group_.index() - 2 - step));
    }
    lane_.wait(leaving_);
  }
  /// Copies to the device go on while the next part travels.
  void all_gather_parts() {
    for (int step = 0; step < group_.size() - 1; ++step) {
      const auto coming = part(group_.index() - step - 1);
      pass_on(part(group_.index() - step), coming);
      lane_.put(leaving_, coming);
    }
    lane_.wait(leaving_), lane_.wait(1 - leaving_);
  }

 private:
  std::span<float> part(int index) const {
    return hearsay::part_of(values_.size(), group_.size(), around(index, group_.size())).of(values_);
  }
  void pass_on(std::span<const float> leaving, std::span<const float> coming) {
    lane_.wait(1 - leaving_);
    const auto in = lane_.buffer(1 - leaving_).first(coming.size());
    group_.peers().exchange(group_.member(around(group_.index() + 1, group_.size())),
                            values_message(lane_.buffer(leaving_).first(leaving.size())),
                            group_.member(around(group_.index() - 1, group_.size())), std::as_writable_bytes(in));
    leaving_ = 1 - leaving_;
  }

  const Group& group_;
  std::span<float> values_;
  Lane& lane_;
  unsigned leaving_ = 0;
};

}  // namespace

void ring_all_reduce(const Group& group, std::span<float> values, Lane& lane) {
  if (group.size() == 1) return;
  LaneRing ring(group, values, lane);
  ring.reduce_scatter();
  ring.all_gather_parts();
}

}  // namespace hearsay
