// Error feedback with momentum correction, masking and clipping, seen through an exchange on one rank and alone.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/global/parts/error_feedback.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace feedback_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

constexpr float m = 0.5F;  // small integers stay exact for a few steps

std::string yaml(const std::string& feedback, double density = 1.0) {
  return "exchange: {name: topk, feedback: {" + feedback +
         "}}\nsparsify: {selector: {name: topk, density: " + std::to_string(density) + "}}\n";
}
GlobalOptions one_rank() { return {.ranks = 1, .iterations = 6, .gradient = integer_gradient}; }

}  // namespace

TEST_CASE("with everything sent and nothing masked, momentum correction is the optimizer's momentum") {
  const GlobalOutcome plain = run_global(yaml("momentum: 0.5, factor_masking: false"), one_rank());
  const GlobalOutcome nesterov = run_global(yaml("momentum: 0.5, nesterov: true, factor_masking: false"), one_rank());
  Vector v(plain.put_in[0][0].size());
  for (std::size_t k = 0; k < 6; ++k) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      const float g = plain.put_in[0][k][i];
      v[i] = m * v[i] + g;
      REQUIRE(plain.came_out[0][k][i] == v[i]);
      REQUIRE(nesterov.came_out[0][k][i] == g + m * v[i]);
    }
  }
}

TEST_CASE("with everything sent and masked, momentum never builds up") {
  const GlobalOutcome outcome = run_global(yaml("momentum: 0.5, factor_masking: true"), one_rank());
  CHECK(outcome.came_out == outcome.put_in);
}

TEST_CASE("what is not sent goes on collecting velocity, not gradients") {
  ErrorFeedback feedback({.momentum = 0.5, .factor_masking = true}, 2, 1);
  const Vector g{4.0F, 4.0F};
  feedback.accumulate(g);  // u = 4, r = 4
  feedback.accumulate(g);  // u = 6, r = 10
  CHECK(feedback.residual()[0] == 10.0F);
  const std::vector<std::uint32_t> first{0};
  const SparseVector sent = feedback.take(first);
  CHECK(sent == SparseVector{{0}, {10.0F}});
  feedback.mask(first);
  feedback.accumulate(g);  // u = (4, 7), r = (4, 17)
  CHECK(feedback.residual()[0] == 4.0F);
  CHECK(feedback.residual()[1] == 17.0F);
  feedback.give_back(sent);
  CHECK(feedback.residual()[0] == 14.0F);
}

TEST_CASE("taking moves values out, zeros are not entries, offsets count") {
  ErrorFeedback feedback({}, 6, 1);
  const Vector g{1.0F, 0.0F, 3.0F};
  feedback.accumulate(g, 3);
  const std::vector<std::uint32_t> all{0, 1, 2};
  CHECK(feedback.take(all, 3) == SparseVector{{3, 5}, {1.0F, 3.0F}});
  CHECK(feedback.take(all, 3).empty());
}

TEST_CASE("long gradients are shortened to c / sqrt(P), short ones are left alone") {
  const ErrorFeedback feedback({.clip_norm = 10.0}, 2, 4);
  CHECK(feedback.clipping(Vector{3.0F, 4.0F}) == 1.0F);  // norm 5 = 10 / 2
  CHECK(feedback.clipping(Vector{6.0F, 8.0F}) == 0.5F);
  CHECK(feedback.clipping(Vector{0.0F, 0.0F}) == 1.0F);
  CHECK(ErrorFeedback({}, 2, 4).clipping(Vector{6e20F, 8e20F}) == 1.0F);
}

TEST_CASE("settings that make no sense are errors of the configuration") {
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: topk, feedback: {nesterov: true}}"), ConfigError);
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: topk, feedback: {momentum: 1.0}}"), ConfigError);
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: gtopk, residual: owner}\nsparsify: {quantiser: {name: int8}}"),
                  ConfigError);
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: gtopk, merge: ring}"), ConfigError);
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: topk}\nsparsify: {selector: {name: topk, density: 0}}"), ConfigError);
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: topk}\nsparsify: {density_schedule: [1.5]}"), ConfigError);
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: allreduce}\nsparsify: {selector: {name: topk}}"), ConfigError);
  CHECK_THROWS_AS(GlobalPlan("exchange: {name: topk}\ntopology: {graph: {name: ring}}"), ConfigError);
}

}  // namespace feedback_test
