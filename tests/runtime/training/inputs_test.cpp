// Whose fault a loss is that is not a number.
#include <torch/torch.h>

#include <limits>

#include "base/error.hpp"
#include "runtime/training/model/batches.hpp"

#include <doctest/doctest.h>

using namespace hearsay;

TEST_CASE("inputs that are not finite are said to be the inputs', with their number and place") {
  const Batch batch{torch::zeros({4, 5}), torch::zeros({4}, torch::kInt64)};
  CHECK_NOTHROW(require_finite_inputs(batch, 0, 0));
  batch.inputs[1][2] = std::numeric_limits<float>::quiet_NaN();
  batch.inputs[3][0] = -std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(require_finite_inputs(batch, 2, 7), doctest::Contains("rank 2, iteration 7: 2 of 20 inputs"),
                       DataError);
  CHECK_NOTHROW(require_finite_inputs({torch::zeros({2}, torch::kInt64), {}}, 0, 0));  // words, say
}
