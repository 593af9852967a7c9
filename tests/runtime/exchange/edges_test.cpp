// What a rank knows of its edges: whatever becomes of them, its row of W stays a row, and who listens hears of it once.
#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "runtime/exchange/membership/edges.hpp"
#include "tests/topology/support.hpp"

namespace hearsay::edges_test {
namespace {

using namespace test;

std::shared_ptr<const Topology> complete(int ranks) {
  return std::make_shared<const Topology>(build(ranks, "complete", "uniform"));
}

/// Sums of powers of two are exact.
double row_sum(const Edges& edges) {
  const Neighbourhood& row = edges.neighbourhood();
  return std::accumulate(row.weights.begin(), row.weights.end(), row.self_weight);
}

struct Diary final : EdgeListener {
  explicit Diary(Edges& edges) : EdgeListener(edges) {}
  void edge_lost(std::size_t edge) override { heard.push_back("lost " + std::to_string(edge)); }
  void edge_begins(std::size_t edge) override { heard.push_back("begins " + std::to_string(edge)); }
  void edge_mixes(std::size_t edge) override { heard.push_back("mixes " + std::to_string(edge)); }
  void rank_lost() override { heard.emplace_back("rank"); }
  std::vector<std::string> heard;
};

TEST_CASE("a row of W sums to 1 whatever becomes of the edges, and an edge weighs something only where it mixes") {
  const auto topology = complete(4);
  Edges edges(topology, 1);
  Random random(7);
  int next_process = topology->ranks();
  for (int change = 0; change < 200; ++change) {
    const std::size_t edge = random.below(3);
    switch (random.below(4)) {
      case 0:
        edges.lose_process(edges.process_at(edge));
        break;
      case 1:
        if (edges.lost(edge)) edges.begin(edge, next_process++);
        break;
      case 2:
        if (edges.begins(edge)) edges.agree(edge);
        break;
      default:
        edges.admit();
    }
    CHECK(row_sum(edges) == 1.0);
    for (std::size_t e = 0; e < 3; ++e) CHECK(edges.neighbourhood().weights[e] == (edges.mixes(e) ? 0.25 : 0.0));
  }
}

TEST_CASE("who listens hears of every death, of a neighbour's as a lost edge, and of nothing when it has gone") {
  Edges edges(complete(4), 0);
  auto diary = std::make_unique<Diary>(edges);
  edges.lose_process(2);
  edges.lose_process(2);  // not a neighbour any more
  edges.lose_process(9);
  CHECK(diary->heard == std::vector<std::string>{"lost 1", "rank", "rank", "rank"});
  diary.reset();
  edges.lose_process(1);
  CHECK(edges.lost(0));
}

TEST_CASE("an edge that begins mixes when both of its ends agree, and not before; one that is lost must begin anew") {
  Edges edges(complete(4), 3);
  Diary diary(edges);
  edges.lose(0);
  edges.begin(0, 4);
  CHECK(edges.process_at(0) == 4);
  CHECK_FALSE(edges.admit());
  CHECK_FALSE(edges.mixes(0));
  edges.agree(0);
  edges.lose(0);
  CHECK_FALSE(edges.admit());
  edges.begin(0, 5);
  CHECK_FALSE(edges.admit());  // what the one before it agreed to is forgotten
  edges.agree(0);
  CHECK(edges.admit());
  CHECK_FALSE(edges.admit());
  CHECK(diary.heard == std::vector<std::string>{"lost 0", "rank", "begins 0", "lost 0", "rank", "begins 0", "mixes 0"});
}

TEST_CASE("a spare has no edges before it sits at a vertex, and all of them are lost until they begin") {
  const auto topology = complete(4);
  Edges edges(topology, 5);
  CHECK(edges.rank() == 5);
  CHECK(edges.neighbourhood().neighbours.empty());
  edges.sit(2);
  CHECK(edges.rank() == 2);
  CHECK(edges.neighbourhood().self_weight == 1.0);
  for (std::size_t e = 0; e < 3; ++e) {
    CHECK(edges.lost(e));
    edges.begin(e, topology->neighbourhood(2).neighbours[e]);
    edges.agree(e);
  }
  CHECK(edges.admit());
  CHECK(edges.neighbourhood().weights == topology->neighbourhood(2).weights);
  CHECK(edges.neighbourhood().self_weight == topology->neighbourhood(2).self_weight);
}

}  // namespace
}  // namespace hearsay::edges_test
