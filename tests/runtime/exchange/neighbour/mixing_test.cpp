// The loops under the mixing rules.
#include <vector>

#include <doctest/doctest.h>

#include "base/loops/parts.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"

namespace hearsay::mixing_test {
namespace {

/// n values that differ from block to block.
std::vector<float> values(std::size_t n, int block) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = 0.1F * static_cast<float>((i * 7 + 13 * static_cast<std::size_t>(block)) % 1001);
  return x;
}

TEST_CASE("long blocks are mixed by any number of threads to the same bits") {
  constexpr std::size_t n = 2 * worth_a_thread + 7, degree = 5;  // one neighbour more than go into a sweep
  std::vector<std::vector<float>> theirs, ours;
  std::vector<MixEdge> edges;
  for (int j = 0; j < static_cast<int>(degree); ++j) theirs.push_back(values(n, j)), ours.push_back(values(n, 10 + j));
  for (std::size_t j = 0; j < degree; ++j) edges.push_back({.weight = 0.13F, .theirs = theirs[j], .ours = ours[j]});
  auto row = values(n, 20), differences = row, row_alone = row, differences_alone = row;
  mix_row(0.35F, edges, row_alone);
  add_differences(0.5F, edges, differences_alone);
  for (const int threads : {2, 3}) {
    CAPTURE(threads);
    row = differences = values(n, 20);
    mix_row(0.35F, edges, row, threads);
    add_differences(0.5F, edges, differences, threads);
    CHECK(row == row_alone);
    CHECK(differences == differences_alone);
  }
  std::vector<float> expected = values(n, 20);
  for (std::size_t i = 0; i < n; ++i) {
    expected[i] *= 0.35F;
    for (const auto& copy : theirs) expected[i] += 0.13F * copy[i];
  }
  CHECK(row_alone == expected);
}

}  // namespace
}  // namespace hearsay::mixing_test
