// Events of single values on a device are those of the processor: positions, changes, the largest change, to the last
// bit, and what is not finite is told alike.
#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/runtime/gpu/changes.hpp"

namespace hearsay::gpu_events_test {
namespace {

using namespace test;

Sparsifier counted_in_steps(const std::string& selector) {
  return sparsifier_of("{selector: " + selector + ", quantiser: {name: dead_zone, step: 0.1}}");
}

Blocks blocks(std::size_t n, std::uint64_t seed) {
  Blocks made{normal_values(seed, n), normal_values(seed + 1, n)};
  for (std::size_t i = 0; i < n; i += 3) made.copy[i] = made.x[i];          // no change at all
  for (std::size_t i = 1; i < n; i += 5) made.copy[i] = made.x[i] + 0.25F;  // at the edge of a zone
  return made;
}

struct Found {
  std::vector<std::uint32_t> positions;
  std::vector<float> values;
  bool operator==(const Found&) const = default;
};

/// What is news in the segments `asked`.
std::vector<Found> found_by(Device& device, ChangeSelection& selection, const Layout& layout, const Blocks& here,
                            float zone, const std::vector<SegmentId>& asked) {
  const FloatBlock x = on(device, here.x), copy = on(device, here.copy);
  for (const SegmentId s : asked) {
    const Segment& segment = layout[s];
    selection.begin(s, x.span().subspan(segment.offset, segment.length),
                    copy.span().subspan(segment.offset, segment.length), kept_count(0.5, segment.length), zone);
  }
  selection.launch();
  device.wait();
  std::vector<Found> found(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) selection.take(asked[i], found[i].positions, found[i].values);
  return found;
}

}  // namespace

TEST_CASE("values that have left the dead zone: few and many, of all segments and of some, packet after packet") {
  const auto here = processor();
  for (const std::string selector : {"{name: dense}", "{name: topk, density: 0.5}"}) {
    const Sparsifier sparsifier = counted_in_steps(selector);
    for (const Layout& layout : layouts()) {
      for (const int rank : {0, 1, 3}) {
        CAPTURE(selector);
        CAPTURE(layout.count());
        CAPTURE(rank);
        const auto there = replica_device(rank, staging_bytes);
        REQUIRE(gpus_select_changes(sparsifier));
        const auto expected = here->select_changes(layout, sparsifier);
        const auto selection = there->select_changes(layout, sparsifier);
        std::uint64_t seed = 10;
        for (const float zone : {9.0F, 1e-30F, 0.25F, 2.0F, 0.5F}) {
          std::vector<SegmentId> asked;
          for (SegmentId s = 0; s < layout.count(); ++s)
            if (layout.count() == 1 || (s + seed) % 3 != 0) asked.push_back(s);
          const Blocks made = blocks(layout.size(), seed++);
          CHECK(found_by(*there, *selection, layout, made, zone, asked) ==
                found_by(*here, *expected, layout, made, zone, asked));
        }
        CHECK(found_by(*there, *selection, layout, blocks(layout.size(), 5), 1.0F, {}).empty());
      }
    }
  }
}

TEST_CASE("the largest change of every segment, also of what is no number") {
  for (const Layout& layout : layouts()) {
    const auto here = processor(), there = replica_device(2, staging_bytes);
    const auto expected = here->largest_changes(layout), measured = there->largest_changes(layout);
    for (const float odd : {0.5F, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Blocks made = blocks(layout.size(), 77);
      made.x[layout.size() / 2] = odd;
      std::vector<double> of_here(layout.count()), of_there(layout.count());
      expected(made.x, made.copy, of_here);
      const FloatBlock x = on(*there, made.x), copy = on(*there, made.copy);
      measured(x.span(), copy.span(), of_there);
      for (SegmentId s = 0; s < layout.count(); ++s) {
        CAPTURE(s);
        CHECK(std::isnan(of_there[s]) == std::isnan(of_here[s]));
        if (!std::isnan(of_here[s])) CHECK(of_there[s] == of_here[s]);
      }
    }
  }
}

TEST_CASE("a change that is no number is told with its position, the first of several") {
  const Sparsifier sparsifier = counted_in_steps("{name: dense}");
  const Layout layout = layout_of({9, 20'000, 5});
  const auto told = [&](Device& device, const Blocks& made) -> std::string {
    const auto selection = device.select_changes(layout, sparsifier);
    try {
      found_by(device, *selection, layout, made, 0.5F, {0, 1, 2});
    } catch (const DivergenceError& error) {
      return error.what();
    }
    return "nothing";
  };
  Blocks made = blocks(layout.size(), 3);
  for (const std::size_t at : {9 + 18'000, 9 + 17'000}) made.x[at] = std::numeric_limits<float>::infinity();
  const auto here = processor(), there = replica_device(1, staging_bytes);
  CHECK(told(*there, made) == told(*here, made));
  CHECK(told(*there, made).find("17000") != std::string::npos);
}

}  // namespace hearsay::gpu_events_test
