#pragma once
// Directed graphs: each as YAML and as the reference simulation is told of it.
#include <string>
#include <vector>

#include "tests/reference/simulation.hpp"
#include "tests/topology/support.hpp"

namespace hearsay::test {

/// Arcs to the next rank on a circle, and from even ranks to rank 0, where more comes in than goes out.
class DirectedFile {
 public:
  explicit DirectedFile(int ranks) : file_(arcs(ranks)) {}
  std::string graph() const { return "{name: edge_list, directed: true, path: " + file_.name() + "}"; }

 private:
  static std::string arcs(int ranks) {
    std::string lines = "# " + std::to_string(ranks) + " ranks\n";
    for (int i = 0; i < ranks; ++i) {
      const int next = (i + 1) % ranks;
      if (next != i) lines += std::to_string(i) + " " + std::to_string(next) + "\n";
      if (next != 0 && i != 0 && i % 2 == 0) lines += std::to_string(i) + " 0\n";
    }
    return lines;
  }
  TextFile file_;
};

struct DirectedChoice {
  std::string graph;  ///< empty: the file
  std::vector<std::vector<double>> (*shares)(int workers);
  std::string yaml(const DirectedFile& file) const {
    return "topology: {graph: " + (graph.empty() ? file.graph() : graph) + ", weights: {name: uniform}}\n";
  }
};
inline std::vector<DirectedChoice> directed_choices() {
  return {{"{name: directed_ring}", reference::directed_ring_shares},
          {"{name: directed_exponential}", reference::directed_exponential_shares},
          {"", reference::towards_zero_shares}};
}

}  // namespace hearsay::test
