// What a rank has learnt of its drift is not taken off much longer than its gradients are.
#include <memory>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/exchange/neighbour/correction/limit.hpp"

namespace hearsay {
namespace {

using Values = std::vector<float>;

/// Two segments, of two values and of one.
struct Limit {
  Limit() { layout.append("a", {2}), layout.append("b", {1}), limit.emplace(layout, *device); }
  Values corrected(Values g, const Values& v) {
    limit->correct(g, v);
    return g;
  }
  Layout layout;
  std::shared_ptr<Device> device = processor();
  std::optional<DriftLimit> limit;
};

TEST_CASE("what is no longer than the gradient is taken off as it is") {
  Limit limit;
  CHECK(limit.corrected({3, 4, 8}, {-4, 3, 8}) == Values{7, 1, 0});
  CHECK(limit.corrected({4, 3, -8}, {0, 2, 1}) == Values{4, 1, -9});
}

TEST_CASE("what is longer by more than a quarter is taken off with that length, each segment for itself") {
  Limit limit;
  CHECK(limit.corrected({3, 4, 8}, {0, 12.5F, 20}) == Values{3, -2.25F, -2});
  CHECK(limit.corrected({5, 0, 8}, {-12.5F, 0, 9}) == Values{11.25F, 0, -1});
}

TEST_CASE("before the first gradient there is nothing to compare with") {
  Limit limit;
  CHECK(limit.corrected({0, 0, 0}, {1, 2, 3}) == Values{-1, -2, -3});
}

TEST_CASE("the length is that of some ten gradients: one that is 0 does not make it 0, many do") {
  Limit limit;
  limit.corrected({0, 0, 8}, {0, 0, 0});
  const float once = -limit.corrected({0, 0, 0}, {0, 0, 8})[2];
  CHECK(once > 4.0F);
  CHECK(once < 8.0F);
  for (int i = 0; i < 100; ++i) limit.corrected({0, 0, 0}, {0, 0, 8});
  CHECK(-limit.corrected({0, 0, 0}, {0, 0, 8})[2] < 0.1F);
}

}  // namespace
}  // namespace hearsay
