// Selections that search otherwise than by the exact top-k find on a device what they find on the processor: positions,
// values and what stays, to the last bit, with the same draws, call after call.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "sparsify/magnitude.hpp"
#include "tests/runtime/gpu/changes.hpp"

namespace hearsay::gpu_search_test {
namespace {

using namespace test;

constexpr const char* selectors[] = {
    "{name: mstopk, density: 0.01}",
    "{name: mstopk, density: 0.5, steps: 1, seed: 3}",
    "{name: mstopk, density: 0.03, steps: 33}",
    "{name: mstopk, density: 0.2, steps: 6}",
    "{name: sampled, density: 0.05, sample: 0.02}",
    "{name: sampled, density: 0.3, seed: 5}",
    "{name: chunked, density: 0.1}",
    "{name: chunked, density: 0.02, chunk: 7}",
    "{name: chunked, density: 0.3, chunk: 5000}",
    "{name: chunked, density: 0.9, chunk: 64}",
};

Sparsifier selecting(const std::string& selector, const std::string& quantiser = "none") {
  return sparsifier_of("{selector: " + selector + ", quantiser: {name: " + quantiser + "}}");
}

/// With a segment that has no values.
std::vector<Layout> all_layouts() {
  std::vector<Layout> all = layouts();
  all.push_back(layout_of({3, 0, 2500, 1, 0}));
  return all;
}

/// Few zeros, mostly zeros, many ties, all equal, magnitudes over many powers of ten.
std::vector<std::vector<float>> kinds_of_values(std::size_t n) {
  std::vector<std::vector<float>> all{normal_values(1, n), normal_values(2, n), tied_values(3, n),
                                      std::vector<float>(n, -0.75F), normal_values(4, n)};
  for (std::size_t i = 0; i < n; ++i)
    if (i % 97 != 0) all[1][i] = 0.0F;
  for (float& value : all.back()) value = std::pow(value, 9.0F);
  return all;
}

/// The first of these alone where many segments take their time.
std::vector<std::vector<float>> values_for(const Layout& layout) {
  auto all = kinds_of_values(layout.size());
  if (layout.count() > 1000) all.resize(2);
  return all;
}

/// Values and k by which one halving finds something else if the mean is added in another order: mean and maximum have
/// their middle between two floats, `low`, which is a value, and one of even bits, from which up there are k.
struct BetweenFloats {
  std::vector<float> values;
  std::size_t k;
};
BetweenFloats values_of_middle_between_floats(std::uint64_t seed, std::size_t n) {
  constexpr float most = 0.45F;
  Random random(seed);
  std::vector<float> values(n);
  long double sum = 0.0L;
  const std::size_t at_low = n / 3;  // neither the first nor the last of those that compete
  for (std::size_t i = 2; i < n; ++i) {
    if (i == at_low) continue;
    values[i] = static_cast<float>(i % 2 == 0 ? random.uniform(0.25, 0.44) : random.uniform() * 0x1p-27);
    if (i == n / 2) values[i] = most;
    sum += values[i];
  }
  auto low = static_cast<float>(((sum + 0.5L) / n + most) / 2);
  if ((magnitude_bits(low) & 1) == 0) low = std::nextafter(low, 0.0F);
  const float high = std::nextafter(low, 1.0F);
  // Half the distance of doubles near mean + maximum; and half that of sums, so that either of two may come out.
  constexpr long double to_the_edge = 0x1p-54L + 0x1p-56L;
  long double missing = n * (static_cast<long double>(low) + high - most - to_the_edge) - sum;
  for (const std::size_t i : {at_low, std::size_t{1}, std::size_t{0}}) {
    values[i] = i == at_low ? low : std::nextafter(static_cast<float>(missing), 0.0F);
    missing -= values[i];
  }
  return {values, static_cast<std::size_t>(std::ranges::count_if(values, [=](float x) { return x >= high; }))};
}

struct Found {
  std::vector<Indices> positions;
  std::vector<std::vector<float>> values;
  bool operator==(const Found&) const = default;
};

Found found_by(Device& device, ChangeSelection& selection, const Layout& layout, const Blocks& here, double density,
               std::uint64_t packet) {
  const FloatBlock x = on(device, here.x), copy = on(device, here.copy);
  std::vector<SegmentId> asked;
  for (SegmentId s = 0; s < layout.count(); ++s)
    if (layout.count() == 1 || (s + packet) % 3 != 0) asked.push_back(s);
  for (const SegmentId s : asked)
    selection.begin(s, x.segment(layout[s]), copy.segment(layout[s]), kept_count(density, layout[s].length), 0.0F);
  selection.launch();
  device.wait();
  Found found{std::vector<Indices>(asked.size()), std::vector<std::vector<float>>(asked.size())};
  for (std::size_t i = 0; i < asked.size(); ++i) selection.take(asked[i], found.positions[i], found.values[i]);
  return found;
}

struct Taken {
  Indices positions;
  std::vector<float> values, rest;
  bool operator==(const Taken&) const = default;
};

Taken taken_by(Device& device, SumSelection& selection, std::span<float> r, const std::vector<float>& g,
               double density) {
  const FloatBlock addend = on(device, g);
  Taken taken;
  selection.take(r, addend.span(), 0.5F, density, taken.positions, taken.values);
  taken.rest = fetched(device, r);
  return taken;
}

}  // namespace

TEST_CASE("changes: every search, layout and kind of values, in any order of blocks, packet after packet" *
          doctest::test_suite("arithmetic")) {
  for (const std::string selector : selectors) {
    for (const Layout& layout : all_layouts()) {
      for (const int rank : {0, 3}) {
        CAPTURE(selector);
        CAPTURE(layout.count());
        CAPTURE(rank);
        const Sparsifier of_here = selecting(selector, rank == 0 ? "fp16" : "none"), of_there = of_here.fresh();
        const auto here = processor(), there = replica_device(rank, staging_bytes);
        REQUIRE(gpus_select_changes(of_there));
        const auto expected = here->select_changes(layout, of_here);
        const auto selection = there->select_changes(layout, of_there);
        std::uint64_t packet = 0;
        for (const std::vector<float>& values : values_for(layout)) {
          const Blocks blocks{values,
                              packet == 0 ? normal_values(8, values.size()) : std::vector<float>(values.size())};
          const double density = of_here.largest_density() * (packet == 3 ? 0.5 : 1.0);
          CHECK(found_by(*there, *selection, layout, blocks, density, packet) ==
                found_by(*here, *expected, layout, blocks, density, packet));
          ++packet;
        }
      }
    }
  }
}

TEST_CASE("sums: every search of all values and segment by segment, and what stays in the residual") {
  for (const std::string selector : selectors) {
    for (const std::string scope : {"global", "per_segment, dense_below: 6"}) {
      for (const Layout& layout : all_layouts()) {
        CAPTURE(selector);
        CAPTURE(scope);
        CAPTURE(layout.count());
        const Sparsifier of_here = selecting(selector.substr(0, selector.size() - 1) + ", scope: " + scope + "}");
        const Sparsifier of_there = of_here.fresh();
        const auto here = processor(), there = replica_device(1, staging_bytes);
        REQUIRE(gpus_select_sums(of_there));
        const auto expected = here->select_sums(layout, of_here), selection = there->select_sums(layout, of_there);
        FloatBlock r_here = here->block(layout.size()), r_there = there->block(layout.size());
        for (const std::vector<float>& g : values_for(layout)) {
          const double density = of_here.largest_density();
          CHECK(taken_by(*there, *selection, r_there.span(), g, density) ==
                taken_by(*here, *expected, r_here.span(), g, density));
        }
      }
    }
  }
}

TEST_CASE("mstopk: the mean has the processor's bits, on which the threshold depends here") {
  const Layout layout = layout_of({3, 16'384});
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Sparsifier of_here = selecting("{name: mstopk, density: 1.0, steps: 1}"), of_there = of_here.fresh();
    const auto here = processor(), there = replica_device(static_cast<int>(seed % 4), staging_bytes);
    const auto expected = here->select_changes(layout, of_here), selection = there->select_changes(layout, of_there);
    const auto [values, k] = values_of_middle_between_floats(seed, 16'384);
    Blocks blocks{std::vector<float>(3), std::vector<float>(layout.size())};
    blocks.x.insert(blocks.x.end(), values.begin(), values.end());
    const double density = static_cast<double>(k) / 16'384.0;
    CHECK(found_by(*there, *selection, layout, blocks, density, 1) ==
          found_by(*here, *expected, layout, blocks, density, 1));
  }
}

TEST_CASE("sampled: a sample that sees none, all or just enough of the large values") {
  constexpr std::size_t n = 20'001, stride = 15, of_large = 7;  // for k = 1000
  const Layout layout = layout_of({5, n});
  const Sparsifier of_here = selecting("{name: sampled, density: 0.05, sample: 0.0001}"), of_there = of_here.fresh();
  const auto here = processor(), there = replica_device(2, staging_bytes);
  const auto expected = here->select_changes(layout, of_here), selection = there->select_changes(layout, of_there);
  for (std::uint64_t packet = 0; packet < 60; ++packet) {
    Blocks blocks{normal_values(packet, n + 5), std::vector<float>(n + 5)};
    for (std::size_t i = of_large; packet < 40 && i < n; i += stride)
      blocks.x[5 + i] += std::copysign(9.0F, blocks.x[5 + i]);
    CHECK(found_by(*there, *selection, layout, blocks, 0.05, 1) == found_by(*here, *expected, layout, blocks, 0.05, 1));
  }
}

TEST_CASE("what is not finite is told with its position, the first of several, and the next call draws on") {
  const Layout layout = layout_of({9, 20'000, 5});
  for (const std::string selector : selectors) {
    CAPTURE(selector);
    const Sparsifier of_here = selecting(selector), of_there = of_here.fresh();
    const double density = of_here.largest_density();
    const auto here = processor(), there = replica_device(1, staging_bytes);
    const auto expected = here->select_changes(layout, of_here), selection = there->select_changes(layout, of_there);
    for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      Blocks blocks{normal_values(3, layout.size()), normal_values(4, layout.size())};
      for (const std::size_t at : {9 + 18'000, 9 + 17'000}) blocks.x[at] = odd;
      const std::string said = told([&] { found_by(*there, *selection, layout, blocks, density, 1); });
      CHECK(said == told([&] { found_by(*here, *expected, layout, blocks, density, 1); }));
      CHECK(said.find("17000") != std::string::npos);
    }
  }
}

TEST_CASE("a selector's count of calls is one, whoever selects") {
  const Layout layout = layout_of({1, 20'000, 9});
  for (const std::string selector : selectors) {
    CAPTURE(selector);
    const Sparsifier of_here = selecting(selector, "int8"), of_there = of_here.fresh();
    const auto here = processor(), there = replica_device(1, staging_bytes);
    const Blocks blocks{normal_values(3, layout.size()), normal_values(4, layout.size())};
    found_by(*here, *here->select_changes(layout, of_here), layout, blocks, of_here.largest_density(), 1);
    if (const auto quantiser = there->quantise_changes(layout, of_there)) {
      const FloatBlock x = on(*there, blocks.x);
      FloatBlock copy = on(*there, blocks.copy);
      for (const SegmentId s : {0U, 1U})
        quantiser->begin(s, x.segment(layout[s]), copy.segment(layout[s]),
                         kept_count(of_there.largest_density(), layout[s].length));
      there->wait();
    } else {
      found_by(*there, *there->select_changes(layout, of_there), layout, blocks, of_there.largest_density(), 1);
    }
    const auto values = normal_values(6, 3000);
    Indices after_here, after_there;
    of_here.selector->select(values, 700, after_here);
    of_there.selector->select(values, 700, after_there);
    CHECK(after_there == after_here);
  }
}

}  // namespace hearsay::gpu_search_test
