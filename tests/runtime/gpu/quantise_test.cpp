// Quantisers write the bytes of the processor's, and read them back alike.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "tests/runtime/gpu/machine.hpp"
#include "tests/sparsify/quantised.hpp"

namespace hearsay {
namespace {

using namespace test;
using device::QuantiserKind;

struct Named {
  QuantiserKind kind;
  const char* yaml;
};
constexpr Named all_kinds[]{{QuantiserKind::none, "{name: none}"},
                            {QuantiserKind::fp16, "{name: fp16}"},
                            {QuantiserKind::int8, "{name: int8}"},
                            {QuantiserKind::one_bit_threshold, "{name: one_bit, centre: threshold}"},
                            {QuantiserKind::one_bit_mean, "{name: one_bit}"},
                            {QuantiserKind::two_bit, "{name: two_bit}"}};

void check_same(Machine& machine, const Named& named, std::span<const float> values,
                std::span<const std::size_t> ends) {
  CAPTURE(named.yaml);
  CAPTURE(values.size());
  const auto quantiser = make_quantiser(named.yaml);
  const Bytes bytes = quantised_bytes(*quantiser, values, ends);
  CHECK(device::quantised_bytes(named.kind, values.size(), static_cast<std::uint32_t>(ends.size())) ==
        quantiser->bytes(values.size(), ends.size()));
  CHECK(machine.quantised(named.kind, values, ends) == bytes);
  const Decoded decoded = machine.dequantised(named.kind, bytes, ends);
  CHECK(decoded.first_bad == device::all_valid);
  std::vector<float> wanted(values.size());
  quantiser->decode(bytes, ends, wanted);
  CHECK(decoded.values == wanted);
}

TEST_CASE("the same bytes, for every kind and size, in one group and in many") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const Named& named : all_kinds) {
      check_same(*machine, named, {}, {});
      for (const std::size_t n : {1U, 2U, 7U, 8U, 9U, 511U, 513U, 5000U}) {
        const std::size_t whole[]{n};
        for (const auto& values : {normal_values(n, n), tied_values(n, n), any_values(n, n), std::vector<float>(n),
                                   std::vector<float>(n, -0.0F), nearly_equal_values(n, n, 3), distinct_values(n, n)})
          check_same(*machine, named, values, whole);
      }
      const std::size_t groups[]{1, 3, 10, 17, 18, 50, 2000, 2001};
      check_same(*machine, named, normal_values(9, 2001), groups);
      check_same(*machine, named, tied_values(9, 2001), groups);
    }
  }
}

TEST_CASE("a hundred groups of any length") {
  for (const auto& machine : machines()) {
    CHECK(rc::check(machine->name(), [&](std::uint64_t seed) {
      Random random(seed);
      std::vector<std::size_t> ends;
      for (std::size_t g = 0; g < 100; ++g) ends.push_back((ends.empty() ? 0 : ends.back()) + 1 + random.below(30));
      const auto values = normal_values(seed, ends.back());
      for (const Named& named : all_kinds) {
        const auto quantiser = make_quantiser(named.yaml);
        RC_ASSERT(machine->quantised(named.kind, values, ends) == quantised_bytes(*quantiser, values, ends));
      }
    }));
  }
}

TEST_CASE("any bytes are finite values, or refused where the processor refuses them") {
  for (const auto& machine : machines()) {
    CHECK(rc::check(machine->name(), [&](std::uint64_t seed) {
      Random random(seed);
      const Named& named = all_kinds[random.below(std::size(all_kinds))];
      const auto quantiser = make_quantiser(named.yaml);
      std::vector<std::size_t> ends;
      for (std::size_t g = random.below(4); g > 0; --g)
        ends.push_back((ends.empty() ? 0 : ends.back()) + 1 + random.below(9));
      std::vector<float> values(ends.empty() ? 0 : ends.back());
      const Bytes bytes = random_bytes(random, quantiser->bytes(values.size(), ends.size()));
      const Decoded decoded = machine->dequantised(named.kind, bytes, ends);
      try {
        quantiser->decode(bytes, ends, values);
        RC_ASSERT(decoded.first_bad == device::all_valid);
        RC_ASSERT(decoded.values == values);
      } catch (const CommunicationError&) {
        RC_ASSERT(decoded.first_bad < values.size());
      }
    }));
  }
}

}  // namespace
}  // namespace hearsay
