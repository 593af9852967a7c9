// An edge-list file, as a graph and as weights, of undirected and of directed edges: an Error, or a topology whose rows
// sum to 1.
#include <cmath>

#include "base/config/config.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "topology/topology.hpp"

namespace hearsay::fuzz {

std::vector<std::string> seeds() {
  return {"0 1\n1 2\n2 3\n3 0\n",
          "0 1 0.25\n1 2 0.25\n2 3 0.25\n3 0 0.25\n0 0 0.5\n1 1 .5\n2 2 .5\n3 3 .5\n",
          "# a star\n0 1\n0\t2 # why\n\n0 3",
          "0 1\n1 0\n1 2\n2 3\n3 1\n",
          "\xef\xbb\xbf"
          "0 1\r\n1 2\r\n2 3\r\n",
          "1 2\n2 3\n3 4\n"};
}

std::vector<std::string> words() {
  return {"0 1\n", "3", " ", "\n", "#", "-1", "4", "2147483648", "0.5", "nan", "inf", "1e-400", "\r\n", "\t"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  constexpr int ranks = 4;
  static fuzz::MemoryFile file;
  file.fill({data, size});
  const std::string path = file.path().string();
  const auto plan = [&](const std::string& section) {
    Config config = Config::from_text(section);
    return TopologyPlan(config);
  };
  static const TopologyPlan plans[]{
      plan("graph: {name: edge_list, path: " + path + "}\nweights: {name: edge_list, path: " + path + "}"),
      plan("graph: {name: edge_list, path: " + path + "}\nweights: {name: metropolis}"),
      plan("graph: {name: edge_list, directed: true, path: " + path + "}\nweights: {name: uniform}")};
  for (const TopologyPlan& of : plans) {
    try {
      const Topology topology = of.build(ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        const Neighbourhood row = topology.neighbourhood(rank);
        double sum = row.self_weight;
        for (std::size_t e = 0; e < row.neighbours.size(); ++e) {
          fuzz::require(row.neighbours[e] >= 0 && row.neighbours[e] < ranks && row.neighbours[e] != rank,
                        "a neighbour");
          if (row.hears(e)) sum += row.weights[e];
        }
        if (!topology.directed()) fuzz::require(std::abs(sum - 1.0) < 1e-6, "a row sums to 1");
      }
    } catch (const Error&) {
    }
  }
  return 0;
}
