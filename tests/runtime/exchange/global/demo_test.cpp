// The laws of DeMo: the transform is one, what is not sent stays in the momentum, and ranks step by the same signs.
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/global/parts/block_dct.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace hearsay::demo_test {
namespace {

using namespace test;

std::string demo(const std::string& keys, double density) {
  return "exchange: {name: demo" + keys + "}\nsparsify: {selector: {name: topk, density: " + std::to_string(density) +
         "}}\n";
}

void normal_gradient(int rank, Iteration k, std::span<float> g) {
  Random random(stream_seed(5, "gradient", static_cast<std::uint64_t>(rank * 1000 + k)));
  for (float& value : g) value = static_cast<float>(random.normal());
}

double squares(const Vector& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}
double largest_difference(const Vector& a, const Vector& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

Layout every_shape() {
  Layout layout;
  layout.append("square", {128, 64});
  layout.append("prime", {127});
  layout.append("one", {1});
  layout.append("convolution", {16, 3, 5, 5});
  layout.append("long", {10, 784});
  layout.append("vector", {96});
  return layout;
}

TEST_CASE("the inverse of the cosine transform undoes it, and lengths stay") {
  for (const std::size_t side : {1U, 4U, 64U}) {
    const Layout layout = every_shape();
    const BlockDct dct(layout, side);
    Vector x(layout.size()), c(layout.size()), back(layout.size());
    normal_gradient(0, static_cast<Iteration>(side), x);
    dct.transform(x, c);
    dct.invert(c, back);
    CHECK(largest_difference(back, x) < 4e-6);
    CHECK(squares(c) == doctest::Approx(squares(x)).epsilon(1e-5));
    CHECK((side == 1) == (largest_difference(c, x) < 1e-6));
    CHECK(dct.blocks().size() == layout.size());
  }
}

TEST_CASE("a block that is the same everywhere is one coefficient, and a half-turn of a cosine another one") {
  Layout layout;
  layout.append("weight", {8, 4});
  const BlockDct dct(layout, 64);
  Vector x(32, 3.0F), c(32);
  dct.transform(x, c);
  CHECK(c[0] == doctest::Approx(3.0 * std::sqrt(32.0)));
  for (std::size_t i = 1; i < 32; ++i) CHECK(std::abs(c[i]) < 1e-5);
  for (std::size_t i = 0; i < 32; ++i)
    x[i] = static_cast<float>(std::cos(std::acos(-1.0) * (static_cast<double>(i / 4) + 0.5) / 8.0));
  dct.transform(x, c);
  CHECK(c[4] == doctest::Approx(4.0));  // row 1, column 0: √(8/2) · √4
  for (std::size_t i = 0; i < 32; ++i)
    if (i != 4) CHECK(std::abs(c[i]) < 1e-5);
}

TEST_CASE("alone and with everything sent it is the sign of the gradient, and nothing is left") {
  const GlobalOutcome outcome = run_global(demo("", 1.0), {.ranks = 1, .iterations = 4, .gradient = normal_gradient});
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t i = 0; i < outcome.came_out[0][k].size(); ++i)
      CHECK(outcome.came_out[0][k][i] == (outcome.put_in[0][k][i] > 0.0F ? 1.0F : -1.0F));
  for (const double left : owed(outcome)) CHECK(std::abs(left) < 1e-5);
}

TEST_CASE("ranks have the same bits, all of them signs") {
  for (const int ranks : {2, 3, 5, 8}) {
    for (const std::string quantiser : {"none", "int8", "one_bit"}) {
      CAPTURE(ranks);
      CAPTURE(quantiser);
      const GlobalOutcome outcome = run_global(
          "exchange: {name: demo}\nsparsify: {selector: {name: topk, density: 0.05}, quantiser: {name: " + quantiser +
              "}}\n",
          {.ranks = ranks, .iterations = 4, .gradient = normal_gradient});
      CHECK(all_ranks_agree(outcome));
      for (const float value : outcome.came_out[0].back()) CHECK(std::abs(value) == 1.0F);
    }
  }
}

TEST_CASE("without signs and with everything sent it is the dense mean of what has not been sent") {
  for (const int ranks : {1, 2, 5}) {
    const GlobalOptions options{.ranks = ranks, .iterations = 4, .gradient = normal_gradient};
    const GlobalOutcome all = run_global(demo(", sign: false", 1.0), options),
                        dense = run_global("exchange: {name: allreduce}\n", options);
    for (std::size_t k = 0; k < 4; ++k) CHECK(largest_difference(all.came_out[0][k], dense.came_out[0][k]) < 1e-5);
  }
}

// One rank: δ after = β δ before + g − what came out.
TEST_CASE("what is not sent stays in the momentum, which decays") {
  for (const double beta : {1.0, 0.5}) {
    const std::string yaml = demo(", sign: false, decay: " + std::to_string(beta), 0.03);
    Vector before;
    for (Iteration iterations = 1; iterations <= 4; ++iterations) {
      const GlobalOutcome outcome =
          run_global(yaml, {.ranks = 1, .iterations = iterations, .gradient = normal_gradient});
      const Vector &in = outcome.put_in[0].back(), &out = outcome.came_out[0].back(), &now = outcome.residual[0];
      if (before.empty()) before.assign(in.size(), 0.0F);
      double left = 0.0;
      for (std::size_t i = 0; i < in.size(); ++i) {
        CHECK(std::abs(beta * before[i] + in[i] - out[i] - now[i]) < 1e-5);
        left = std::max(left, std::abs(static_cast<double>(now[i])));
      }
      CHECK(left > 1.0);
      before = now;
    }
  }
}

TEST_CASE("the mean is over the ranks that have sent a coefficient") {
  const auto only_rank_0 = [](int rank, Iteration k, std::span<float> g) {
    normal_gradient(rank, k, g);
    if (rank > 0) std::ranges::fill(g, 0.0F);
  };
  const std::string yaml = demo(", sign: false", 0.1);
  const GlobalOutcome alone = run_global(yaml, {.ranks = 1, .iterations = 3, .gradient = only_rank_0}),
                      among = run_global(yaml, {.ranks = 4, .iterations = 3, .gradient = only_rank_0});
  for (std::size_t k = 0; k < 3; ++k) CHECK(largest_difference(alone.came_out[0][k], among.came_out[0][k]) < 1e-5);
}

TEST_CASE("every block sends its own k coefficients, and wrong settings are refused") {
  Layout layout;
  layout.append("weight", {64, 128});
  layout.append("bias", {64});
  const GlobalOutcome outcome =
      run_global(demo("", 1.0 / 128.0), {.ranks = 2, .iterations = 1, .gradient = normal_gradient}, layout);
  std::uint64_t bytes = 0;
  for (const Traffic& traffic : outcome.traffic) bytes += traffic.bytes;
  CHECK(bytes == 2 * (8 * (32 + 32 + 1) + 32));  // headers: 8 of the message, 24 of the gather
  for (const std::string keys : {", decay: 1.1", ", block_side: 0", ", schedule: asynchronous"})
    CHECK_THROWS_AS(GlobalPlan(demo(keys, 0.1)), ConfigError);
}

}  // namespace
}  // namespace hearsay::demo_test
