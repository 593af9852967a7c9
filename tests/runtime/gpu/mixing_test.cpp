// Mixing has the bits of the processor's loops.
#include <doctest/doctest.h>

#include "runtime/exchange/neighbour/mixing/mixing.hpp"
#include "tests/runtime/gpu/machine.hpp"

namespace hearsay::mixing_test {
namespace {

using namespace test;

TEST_CASE("a row of W: every degree and size, also off multiples of 16 bytes") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const std::size_t degree : {0U, 1U, 2U, 4U, 8U, 9U, 19U}) {
      for (const std::size_t n : {0U, 1U, 3U, 4U, 4095U, 4097U, 30001U}) {
        for (const unsigned shift : {0U, 1U}) {
          CAPTURE(degree);
          CAPTURE(n);
          std::vector<std::vector<float>> copies;
          std::vector<float> weights;
          std::vector<MixEdge> edges;
          for (std::size_t e = 0; e < degree; ++e) {
            copies.push_back(normal_values(e, n));
            weights.push_back(0.1F + 0.01F * static_cast<float>(e));
          }
          for (std::size_t e = 0; e < degree; ++e)
            edges.push_back({.weight = weights[e], .theirs = copies[e], .ours = {}});
          auto x = normal_values(99, n);
          const auto mixed = machine->mixed(0.3F, weights, copies, x, shift);
          mix_row(0.3F, edges, x);
          CHECK(mixed == x);
        }
      }
    }
  }
}

TEST_CASE("a step along a difference") {
  for (const auto& machine : machines()) {
    CAPTURE(machine->name());
    for (const std::size_t n : {0U, 1U, 5U, 4096U, 10001U}) {
      const auto theirs = normal_values(1, n), ours = normal_values(2, n);
      auto x = normal_values(3, n);
      const auto moved = machine->with_difference(0.7F, theirs, ours, x);
      add_difference(0.7F, theirs, ours, x);
      CHECK(moved == x);
    }
  }
}

TEST_CASE("steps along the differences of many edges are the steps of one after another") {
  for (const std::size_t degree : {0U, 1U, 2U, 3U, 4U, 5U, 9U}) {
    for (const std::size_t n : {0U, 1U, 15U, 16U, 4097U}) {
      CAPTURE(degree);
      CAPTURE(n);
      std::vector<std::vector<float>> theirs, ours;
      for (std::size_t e = 0; e < degree; ++e) {
        theirs.push_back(normal_values(2 * e, n));
        ours.push_back(normal_values(2 * (e - e % 2) + 1, n));  // some edges share a copy
      }
      auto x = normal_values(99, n), expected = x;
      std::vector<MixEdge> edges;
      for (std::size_t e = 0; e < degree; ++e) {
        const float weight = 0.1F + 0.01F * static_cast<float>(e);
        edges.push_back({.weight = weight, .theirs = theirs[e], .ours = ours[e]});
        for (std::size_t i = 0; i < n; ++i) expected[i] += 0.3F * weight * (theirs[e][i] - ours[e][i]);
      }
      add_differences(0.3F, edges, x);
      CHECK(x == expected);
    }
  }
}

}  // namespace
}  // namespace hearsay::mixing_test
