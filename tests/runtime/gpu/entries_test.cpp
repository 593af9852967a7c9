// Gather, scatter and scatter with addition are what their loops are.
#include <doctest/doctest.h>

#include "tests/runtime/gpu/machine.hpp"

namespace hearsay::entries_test {
namespace {

using namespace test;

TEST_CASE("entries and blocks: each position once, nothing else touched") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const std::size_t n : {0U, 1U, 2U, 1001U, 30000U}) {
      for (const std::size_t k : {std::size_t{0}, std::min<std::size_t>(1, n), n / 3, n}) {
        CAPTURE(n);
        CAPTURE(k);
        const Indices positions = random_positions(n + k, k, n);
        const auto block = normal_values(1, n), entries = normal_values(2, k);
        auto set = block, added = block;
        std::vector<float> picked;
        for (std::size_t e = 0; e < k; ++e) {
          picked.push_back(block[positions[e]]);
          set[positions[e]] = entries[e];
          added[positions[e]] += 0.5F * entries[e];
        }
        CHECK(machine->gathered(block, positions) == picked);
        CHECK(machine->scattered(block, positions, entries) == set);
        CHECK(machine->scatter_added(block, positions, entries, 0.5F) == added);
      }
    }
  }
}

}  // namespace
}  // namespace hearsay::entries_test
