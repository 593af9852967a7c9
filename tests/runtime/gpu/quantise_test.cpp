// Changes that a device quantises are those of the processor: positions, bytes and what is added to the copy, to the
// last bit; what is not finite is told alike, and leaves the copy as it was.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "sparsify/quantisers/rounding.hpp"
#include "sparsify/search/positions.hpp"
#include "tests/runtime/gpu/changes.hpp"

namespace hearsay::gpu_quantise_test {
namespace {

using namespace test;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// All codes that devices write, of all values and of some.
std::vector<std::string> sections() {
  std::vector<std::string> all;
  for (const std::string quantiser :
       {"{name: int8}", "{name: fp4}", "{name: two_bit}", "{name: one_bit}", "{name: one_bit, centre: threshold}"})
    for (const std::string selector : {"{name: dense}", "{name: topk, density: 0.3}"})
      all.push_back("{selector: " + selector + ", quantiser: " + quantiser + "}");
  all.push_back("{selector: {name: mstopk, density: 0.1}, quantiser: {name: int8}}");
  all.push_back("{selector: {name: chunked, density: 0.2, chunk: 100}, quantiser: {name: two_bit}}");
  return all;
}

/// What changes may be like: any; all equal; none, with zeros of both signs; tiny; as large as floats go.
std::vector<Blocks> kinds_of_blocks(std::size_t n) {
  Blocks any{normal_values(3, n), normal_values(4, n)}, equal = any, none = any, tiny = any, huge = any;
  for (std::size_t i = 0; i < n; i += 3) any.copy[i] = any.x[i];
  equal.copy.assign(n, 0.0F), equal.x.assign(n, 0.3F);
  none.copy = none.x;
  for (std::size_t i = 0; i < n; i += 2) none.x[i] = none.copy[i] = i % 4 == 0 ? 0.0F : -0.0F;
  for (std::size_t i = 0; i < n; i += 6) none.x[i] = -none.x[i];
  tiny.copy.assign(n, 0.0F), huge.copy.assign(n, 0.0F);
  for (float& x : tiny.x) x *= 0x1p-146F;  // a few of the smallest steps between floats
  for (float& x : huge.x) x = std::clamp(x * 0x1p126F, -0x1.fffffep127F, 0x1.fffffep127F);
  if (n > 2) huge.x[n / 2] = std::numeric_limits<float>::max();
  return {any, equal, none, tiny, huge};
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// What travels of the segments asked for, and the copy afterwards.
struct Written {
  std::vector<Indices> positions;
  std::vector<Bytes> payloads;
  std::vector<std::uint32_t> copy;
  bool operator==(const Written&) const = default;
};

Written written_by(Device& device, ChangeQuantiser& quantiser, const Layout& layout, const Blocks& here, double density,
                   const std::vector<SegmentId>& asked) {
  const FloatBlock x = on(device, here.x);
  FloatBlock copy = on(device, here.copy);
  for (const SegmentId s : asked)
    quantiser.begin(s, x.segment(layout[s]), copy.segment(layout[s]), kept_count(density, layout[s].length));
  quantiser.launch();
  device.wait();
  Written written;
  for (const SegmentId s : asked) {
    Indices positions;
    const auto payload = quantiser.take(s, positions);
    if (positions.empty()) all_positions(layout[s].length, positions);
    written.positions.push_back(positions);
    written.payloads.emplace_back(payload.begin(), payload.end());
  }
  written.copy = bits_of(fetched(device, copy.span()));
  return written;
}

/// The same by the processor's selection and codec, as a link without a quantiser does it.
Written expected_of(const Sparsifier& sparsifier, const Layout& layout, const Blocks& here, double density,
                    const std::vector<SegmentId>& asked) {
  const auto device = processor();
  const auto selection = device->select_changes(layout, sparsifier);
  Blocks blocks = here;
  Written written;
  for (const SegmentId s : asked) {
    const std::size_t offset = layout[s].offset, n = layout[s].length;
    const auto copy = std::span(blocks.copy).subspan(offset, n);
    selection->begin(s, std::span(blocks.x).subspan(offset, n), copy, kept_count(density, n), 0.0F);
    Indices positions;
    std::vector<float> values;
    selection->take(s, positions, values);
    Bytes body(sparsifier.codec->bound(positions.size(), n));
    const EncodedSize size = sparsifier.codec->encode(positions, values, n, {}, body);
    body.resize(size.total());
    sparsifier.codec->decode(body, positions.size(), n, {}, positions, values);
    device->add_entries(positions, values, copy);
    written.positions.push_back(positions);
    written.payloads.emplace_back(body.begin() + static_cast<std::ptrdiff_t>(size.index_bytes), body.end());
  }
  written.copy = bits_of(blocks.copy);
  return written;
}

/// The copy after a device has added what `sent` says of the segments asked for.
std::vector<std::uint32_t> copy_after(Device& device, ChangeQuantiser& quantiser, const Layout& layout,
                                      const Blocks& here, const Written& sent, const std::vector<SegmentId>& asked) {
  FloatBlock copy = on(device, here.copy);
  std::vector<ChangeQuantiser::Payload> payloads;
  Indices positions;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Indices& own = sent.positions[i];
    payloads.push_back({.copy = copy.segment(layout[asked[i]]), .count = own.size(), .bytes = sent.payloads[i]});
    if (own.size() < layout[asked[i]].length) positions.insert(positions.end(), own.begin(), own.end());
  }
  quantiser.add(payloads, positions);
  return bits_of(fetched(device, copy.span()));
}

std::vector<SegmentId> all_of(const Layout& layout) {
  std::vector<SegmentId> all(layout.count());
  for (SegmentId s = 0; s < layout.count(); ++s) all[s] = s;
  return all;
}

/// Large and tiny ones, so that sums are rounded. The sum of all but the first three is between two doubles: one gives
/// a mean halfway between two levels, the other one a mean above that.
std::vector<float> values_of_mean_between_levels(std::uint64_t seed, std::size_t size) {
  std::vector<float> values = normal_values(seed, size);
  const auto group = std::span(values).subspan(3);
  const auto n = static_cast<long double>(group.size());
  long double sum = 0.0L;
  for (std::size_t i = 0; i < group.size(); ++i) {
    group[i] = i < 3 ? 0.0F : std::abs(group[i]) * (i % 2 == 0 ? 1.0F : 0x1p-27F);
    sum += group[i];
  }
  constexpr float half_step = 0x1p-14F;       // of levels from 1/4 to 1/2
  constexpr long double half_ulp = 0x1p-41L;  // of sums from 4096 to 8192
  long double missing = n * (level(static_cast<double>(1.01L * sum / n)) + half_step) - sum + half_ulp;
  for (float& value : group.first(3)) {
    value = std::nextafter(static_cast<float>(missing), 0.0F);
    missing -= value;
  }
  return values;
}

}  // namespace

TEST_CASE("codes of changes: every code, kind of change and layout, in any order of blocks, packet after packet" *
          doctest::test_suite("arithmetic")) {
  for (const std::string& section : sections()) {
    for (const Layout& layout : layouts()) {
      for (const int rank : {0, 1, 3}) {
        const Sparsifier sparsifier = sparsifier_of(section), of_here = sparsifier.fresh();
        CAPTURE(section);
        CAPTURE(layout.count());
        CAPTURE(rank);
        const auto there = replica_device(rank, staging_bytes);
        const auto quantiser = there->quantise_changes(layout, sparsifier);
        REQUIRE(quantiser != nullptr);
        std::vector<SegmentId> asked = all_of(layout);
        for (const Blocks& blocks : kinds_of_blocks(layout.size())) {
          const double density = sparsifier.largest_density();
          const Written expected = expected_of(of_here, layout, blocks, density, asked);
          CHECK(written_by(*there, *quantiser, layout, blocks, density, asked) == expected);
          CHECK(copy_after(*there, *quantiser, layout, blocks, expected, asked) == expected.copy);
          if (asked.size() > 1) std::erase_if(asked, [](SegmentId s) { return s % 5 == 1; });
        }
        CHECK(written_by(*there, *quantiser, layout, kinds_of_blocks(layout.size()).front(), 1.0, {}).payloads.empty());
      }
    }
  }
}

TEST_CASE("a mean halfway between two levels: which one it is depends on the order of the additions") {
  const Layout layout = layout_of({3, 16'384});
  const Sparsifier sparsifier = sparsifier_of("{quantiser: {name: one_bit}}");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Blocks blocks{values_of_mean_between_levels(seed, layout.size()), std::vector<float>(layout.size())};
    const auto there = replica_device(1, staging_bytes);
    const auto quantiser = there->quantise_changes(layout, sparsifier);
    CHECK(written_by(*there, *quantiser, layout, blocks, 1.0, {1}) ==
          expected_of(sparsifier, layout, blocks, 1.0, {1}));
  }
}

TEST_CASE("payloads that are none are refused with the processor's words, and nothing is added") {
  const Layout layout = layout_of({5, 40});
  for (const std::string& section : sections()) {
    CAPTURE(section);
    const Sparsifier sparsifier = sparsifier_of(section);
    const Blocks blocks = kinds_of_blocks(layout.size()).front();
    const Written good = expected_of(sparsifier, layout, blocks, 1.0, all_of(layout));
    std::vector<Written> bad(3, good);
    bad[0].payloads[1].pop_back();
    bad[1].payloads[1].push_back(std::byte{1});
    bad[2].payloads[1][3] = std::byte{0xff};  // a level below 0
    const auto there = replica_device(1, staging_bytes);
    const auto quantiser = there->quantise_changes(layout, sparsifier);
    for (const Written& sent : bad) {
      Indices positions;
      std::vector<float> values;
      const std::string said = told([&] { copy_after(*there, *quantiser, layout, blocks, sent, all_of(layout)); });
      CHECK(said == told([&] { sparsifier.codec->decode(sent.payloads[1], 40, 40, {}, positions, values); }));
      CHECK(said != "nothing");
    }
    CHECK(copy_after(*there, *quantiser, layout, blocks, good, all_of(layout)) == good.copy);
  }
}

TEST_CASE("what a device has no kernels for it does not quantise") {
  const Layout layout = layout_of({5});
  for (const std::string section :
       {"{quantiser: {name: fp16}}", "{quantiser: {name: none}}", "{quantiser: {name: one_bit, centre: row_mean}}",
        "{selector: {name: sampled, density: 0.1}, quantiser: {name: int8}}",
        "{selector: {name: random, density: 0.1}, quantiser: {name: int8}}"})
    CHECK(replica_device(0)->quantise_changes(layout, sparsifier_of(section)) == nullptr);
}

TEST_CASE("a change that is no number is told with its position, the first of several; its copy stays") {
  const Layout layout = layout_of({9, 20'000, 5});
  for (const std::string& section : sections()) {
    CAPTURE(section);
    const Sparsifier sparsifier = sparsifier_of(section);
    const double density = sparsifier.largest_density();
    for (const float odd : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      Blocks made{normal_values(3, layout.size()), normal_values(4, layout.size())};
      for (const std::size_t at : {9 + 18'000, 9 + 17'000}) made.x[at] = odd;
      const auto there = replica_device(1, staging_bytes);
      const auto quantiser = there->quantise_changes(layout, sparsifier);
      const std::string said = told([&] { written_by(*there, *quantiser, layout, made, density, all_of(layout)); });
      CHECK(said == told([&] { expected_of(sparsifier, layout, made, density, all_of(layout)); }));
      CHECK(said.find("17000") != std::string::npos);

      const FloatBlock x = on(*there, made.x);
      FloatBlock copy = on(*there, made.copy);
      quantiser->begin(1, x.segment(layout[1]), copy.segment(layout[1]), kept_count(density, layout[1].length));
      quantiser->launch();
      there->wait();
      CHECK(fetched(*there, copy.span()) == made.copy);
    }
  }
}

}  // namespace hearsay::gpu_quantise_test
