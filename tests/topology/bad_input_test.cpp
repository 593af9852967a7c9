// Graphs and weights that cannot be: the exact type of the error, and a message that names the value and the remedy.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/topology/support.hpp"

namespace hearsay::bad_input_test {
namespace {

template <class Exception>
void check_refused(int ranks, const std::string& graph, const std::string& weights,
                   const std::vector<std::string>& words) {
  const std::string message = test::message_of<Exception>([&] { test::build(ranks, graph, weights); });
  CAPTURE(graph);
  CAPTURE(message);
  CHECK_FALSE(message.empty());
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(message.find(word) != std::string::npos);
  }
}

template <class Exception>
void check_file_refused(const std::string& text, const std::string& place, const std::vector<std::string>& words) {
  const test::TextFile file(text);
  check_refused<Exception>(4, file.entry(), "metropolis", words);
  check_refused<Exception>(4, file.entry(), "metropolis", {file.name() + place});
}

/// Weights for the path 0–1–2.
template <class Exception>
void check_weights_refused(const std::string& text, const std::vector<std::string>& words) {
  const test::TextFile file(text);
  check_refused<Exception>(3, "path", file.entry(), words);
}

std::string matrix_refused(const MixingMatrix& matrix, const Graph& graph) {
  return test::message_of<ConfigError>([&] { matrix.check(graph); });
}

}  // namespace

TEST_CASE("sizes that a family does not have") {
  check_refused<ConfigError>(7, "torus", "uniform", {"torus", "7 ranks", ">= 3", "run on 9 ranks"});
  check_refused<ConfigError>(11, "torus", "uniform", {"11 ranks", "9 or 12"});
  check_refused<ConfigError>(12, "{name: torus, rows: 5}", "uniform", {"5 rows", "15", "topology.graph.rows"});
  check_refused<ConfigError>(12, "{name: torus, rows: 6}", "uniform", {"6 rows", "18"});
  check_refused<ConfigError>(3, "grid", "metropolis", {"grid", "3 ranks", ">= 2", "4 ranks"});
  check_refused<ConfigError>(6, "hypercube", "uniform", {"hypercube", "6 is not a power of two", "4 or 8"});
  check_refused<ConfigError>(0, "ring", "uniform", {"0 ranks"});
  check_refused<ConfigError>(-1, "ring", "uniform", {"-1 ranks"});
}

TEST_CASE("graphs of more edges than can be held are refused before they are built") {
  check_refused<ConfigError>(100'000, "complete", "uniform",
                             {"'complete': 100000 ranks have 4999950000 edges", "at most 10000000", "ring"});
  check_refused<ConfigError>(100'000, "{name: erdos_renyi, probability: 0.5}", "metropolis",
                             {"'erdos_renyi': 100000 ranks have 2499975000 edges", "at most 10000000"});
}

TEST_CASE("keys out of range") {
  check_refused<ConfigError>(9, "{name: torus, rows: 2}", "uniform", {"graph.rows: must be 0 or >= 3, got 2"});
  check_refused<ConfigError>(9, "{name: grid, rows: 1}", "uniform", {"graph.rows: must be 0 or >= 2, got 1", "path"});
  check_refused<ConfigError>(9, "{name: grid, rows: -1}", "uniform", {"graph.rows: must be in [0, "});
  check_refused<ConfigError>(9, "{name: erdos_renyi, probability: 1.5}", "uniform", {"in [0, 1]", "1.5"});
  check_refused<ConfigError>(9, "{name: erdos_renyi, seed: -1}", "uniform", {"seed", ">= 0", "-1"});
}

TEST_CASE("an erdos_renyi graph that stays disconnected") {
  check_refused<ConfigError>(50, "{name: erdos_renyi, probability: 0.01}", "metropolis",
                             {"0.010000", "50 ranks", "100 draws", "0.156481"});
}

TEST_CASE("edge lists") {
  check_file_refused<DataError>("0 1\n1 x\n", ":2: ", {"'x'"});
  check_file_refused<DataError>("0 1\n\n# comment\n1 2.5\n", ":4: ", {"'2.5'"});
  check_file_refused<DataError>("0 -1\n", ":1: ", {"'-1'"});
  check_file_refused<DataError>("0 1 0.5 7\n", ":1: ", {"4 columns"});
  check_file_refused<DataError>("0\n", ":1: ", {"1 columns"});
  check_file_refused<DataError>("0 1\n2 2\n", ":2: ", {"self-loop at vertex 2"});
  check_file_refused<DataError>("0 1\n1 2\n1 0\n", ":3: ", {"duplicate edge 1 0", "line 1"});
  check_file_refused<DataError>("0 1\n1 2 0.5\n", ":2: ", {"on every line or on none"});
  check_file_refused<DataError>("0 1 heavy\n", ":1: ", {"'heavy'"});
  check_file_refused<DataError>("0 1 nan\n", ":1: ", {"finite", "'nan'"});
  check_file_refused<ConfigError>("0 1\n1 4\n", ":2: ", {"vertex 4", "4 ranks", "at least 5"});
  check_file_refused<ConfigError>("0 1\n2 3\n", ": not connected", {"2 components {0, 1} {2, 3}"});
  check_file_refused<ConfigError>("", ": not connected", {"4 components {0} {1} {2} {3}"});
  for (const char* from_1 : {"1 2\n2 3\n3 4\n4 1\n", "1 2\n2 3\n", "4 3\n3 2 \n5 1\n"})
    check_file_refused<ConfigError>(from_1, ": vertices 1 to ", {"none is 0: are they numbered from 1?", "are 0 to 3"});
  check_file_refused<DataError>("\xff\xfe", ": is UTF-16", {"save it as UTF-8"});
  check_refused<ConfigError>(4, "edge_list", "metropolis", {"topology.graph.path"});
  check_refused<DataError>(4, "{name: edge_list, path: no/such/file}", "metropolis",
                           {"no/such/file", "cannot be read"});
  check_refused<DataError>(4, "{name: edge_list, path: /dev/zero}", "metropolis", {"is a device"});
  check_refused<DataError>(4, "{name: edge_list, path: /}", "metropolis", {"is a folder"});
}

TEST_CASE("edge lists with a byte order mark, CRLF line ends and blank lines at the end are the same without") {
  const test::TextFile file(
      "\xef\xbb\xbf"
      "0 1\r\n1 2\r\n\r\n\n");
  CHECK(test::build(3, file.entry(), "metropolis").directed_edges() == 4);
}

TEST_CASE("directed edge lists") {
  const auto refused = [](const std::string& text, const std::vector<std::string>& words) {
    const test::TextFile file(text);
    check_refused<ConfigError>(3, "{name: edge_list, directed: true, path: " + file.name() + "}", "uniform", words);
  };
  refused("0 1\n1 2\n", {"not strongly connected", "from rank 1 to rank 0"});
  refused("0 1\n1 0\n2 0\n", {"not strongly connected", "from rank 0 to rank 2"});
  const test::TextFile twice("0 1\n1 0\n0 1\n"), both("0 1\n1 0\n1 2\n2 1\n");
  check_refused<DataError>(3, "{name: edge_list, directed: true, path: " + twice.name() + "}", "uniform",
                           {":3: ", "duplicate edge 0 1", "line 1"});
  const std::string graph = "{name: edge_list, directed: true, path: " + both.name() + "}";
  CHECK(test::build(3, graph, "uniform").directed_edges() == 4);
  check_refused<ConfigError>(3, graph, "metropolis", {"directed", "use weights: {name: uniform}"});
}

TEST_CASE("shares that lose something, or leave somebody out") {
  const Targets circle{{1}, {2}, {0}};
  const auto message = [&](const MixingMatrix& shares) {
    return test::message_of<ConfigError>([&] { shares.check_shares(circle); });
  };
  MixingMatrix shares = test::build(3, "directed_ring", "uniform").matrix;
  CHECK(message(shares).empty());
  shares(1, 0) = 0.25;
  CHECK(message(shares).find("column 0 of W sums to 0.75") != std::string::npos);
  shares(2, 0) = 0.25;
  CHECK(message(shares).find("to nobody else") != std::string::npos);
  shares(2, 0) = 0.0, shares(1, 0) = 1.0, shares(0, 0) = 0.0;
  CHECK(message(shares).find("keep a share of its own") != std::string::npos);
}

TEST_CASE("weights that are not doubly stochastic") {
  check_refused<ConfigError>(4, "star", "uniform", {"uniform", "rank 0 has 3 and rank 1 has 1", "metropolis"});
  check_weights_refused<ConfigError>("0 1 .5\n1 2 .5\n0 0 .5\n1 1 .1\n2 2 .5\n", {"row 1", "1.1", "metropolis"});
  check_weights_refused<ConfigError>("0 1 .5\n", {"w(1, 2) = 0", "edge"});
  check_weights_refused<ConfigError>("0 1 .5\n1 2 .25\n0 2 .25\n", {"w(0, 2) = 0.25", "no such edge"});
  check_weights_refused<ConfigError>("0 1 .5\n1 2 -.25\n", {"w(1, 2) = -0.25", "> 0"});
  check_weights_refused<DataError>("0 1 .5\n1 2 .5\n0 0 .5\n", {"rank 0 has a self-weight, rank 1 has none"});
  check_weights_refused<DataError>("0 1\n1 2\n", {":1: ", "`i j w`"});
  check_refused<ConfigError>(3, "path", "edge_list", {"topology.weights.path"});
}

TEST_CASE("weights that never mix, or diverge") {
  const test::TextFile swap("0 1 1\n");
  check_refused<ConfigError>(2, "path", swap.entry(), {"spectral gap", "from -1 to -1"});
  const test::TextFile beyond("0 1 2\n");
  check_refused<ConfigError>(2, "path", beyond.entry(), {"spectral gap", "is -2"});
}

TEST_CASE("MixingMatrix::check names the worst entry") {
  const Topology good = test::build(4, "ring", "uniform");
  MixingMatrix w = good.matrix;
  CHECK_NOTHROW(w.check(good.graph));
  w(2, 1) += 1e-3;
  CHECK(matrix_refused(w, good.graph).find("not symmetric: w(2, 1) = 0.3343333333, w(1, 2) = 0.3333333333") !=
        std::string::npos);
  w(1, 2) += 1e-3;
  w(3, 3) += 0.5;
  CHECK(matrix_refused(w, good.graph).find("row 3 of W sums to 1.5") != std::string::npos);
  w = good.matrix;
  w(0, 0) += 1e-12;
  CHECK_NOTHROW(w.check(good.graph));
  w(0, 0) = std::nan("");
  CHECK(matrix_refused(w, good.graph).find("w(0, 0) = nan") != std::string::npos);
  CHECK_THROWS_AS(good.matrix.check(test::build_graph(5, "ring")), std::logic_error);
}

}  // namespace hearsay::bad_input_test
