// What a rank's model is while a round of local steps has not ended.
#include <string>

#include "tests/runtime/exchange/outer/given.hpp"

namespace hearsay {
namespace {

using namespace test;

constexpr Iteration local_steps = 4;

const std::vector<std::string>& algorithms() {
  static const std::vector<std::string> all{
      everybody + "exchange: {name: diloco, local_steps: 4}\n",
      everybody + "exchange: {name: noloco, local_steps: 4}\n",
      everybody + "exchange: {name: sparseloco, local_steps: 4}\nsparsify: {selector: {name: topk, density: 0.25}}\n",
      "topology: {graph: {name: ring}}\nexchange: {name: gasloc, local_steps: 4}\n",
      "topology: {graph: {name: ring}}\nexchange: {name: gossip_outer, local_steps: 4, correction: {name: drift}}\n"
      "trigger: {name: always}\n"};
  return all;
}

TEST_CASE("within a round it is where the round began, at its end it is x") {
  for (const std::string& yaml : algorithms()) {
    for (const int ranks : {1, 3, 4}) {
      CAPTURE(yaml);
      CAPTURE(ranks);
      const JobOutcome at_end = train_given(yaml, ranks, 2 * local_steps);
      const JobOutcome within = train_given(yaml, ranks, 2 * local_steps + 3);
      for (std::size_t r = 0; r < at_end.ranks.size(); ++r) {
        CHECK(at_end.ranks[r].round_model == at_end.ranks[r].x);
        CHECK(within.ranks[r].round_model == at_end.ranks[r].x);
        CHECK(within.ranks[r].x != at_end.ranks[r].x);
      }
    }
  }
}

TEST_CASE("what exchanges at every iteration has none") {
  for (const char* name : {"dpsgd", "allreduce"}) {
    const std::string graph = name == std::string("dpsgd") ? "topology: {graph: {name: ring}}\n" : everybody;
    const JobOutcome job = train_given(graph + "exchange: {name: " + name + "}\n", 3, 5);
    for (const RankOutcome& rank : job.ranks) CHECK(rank.round_model.empty());
  }
}

}  // namespace
}  // namespace hearsay
