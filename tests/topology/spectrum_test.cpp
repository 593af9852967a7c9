// Measured spectral gaps against closed forms.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <numbers>
#include <set>

#include <doctest/doctest.h>

#include "tests/topology/support.hpp"
#include "topology/spectrum.hpp"

namespace hearsay::spectrum_test {
namespace {

constexpr double pi = std::numbers::pi;

void check_gap(int ranks, const std::string& graph, const std::string& weights, double expected) {
  CAPTURE(graph);
  CAPTURE(weights);
  CAPTURE(ranks);
  CHECK(std::abs(test::build(ranks, graph, weights).spectrum().gap - expected) < 1e-12);
}

/// To the digits of a published table.
void check_tabled(int ranks, const std::string& graph, const std::string& weights, double expected) {
  CAPTURE(graph);
  CAPTURE(weights);
  CAPTURE(ranks);
  CHECK(std::abs(test::build(ranks, graph, weights).spectrum().gap - expected) < 0.6e-6);
}

}  // namespace

TEST_CASE("ring") {
  for (const int n : {4, 5, 7, 8, 16, 33, 64}) check_gap(n, "ring", "uniform", 2.0 / 3.0 * (1 - std::cos(2 * pi / n)));
  for (const int n : {4, 6, 8, 32}) {
    const double c = std::cos(2 * pi / n);
    check_gap(n, "ring", "best_constant", 1 - (1 + c) / (3 - c));
    const double alpha = 2 / ((2 - 2 * c) + 4);
    CHECK(test::build(n, "ring", "best_constant").matrix(0, 1) == doctest::Approx(alpha).epsilon(1e-12));
  }
  check_gap(3, "ring", "uniform", 1.0);
  check_gap(2, "ring", "uniform", 1.0);
  CHECK(test::build(2, "ring", "uniform").directed_edges() == 2);
}

TEST_CASE("path") {
  for (const int n : {3, 4, 7, 16, 31}) {
    check_gap(n, "path", "metropolis", 2.0 / 3.0 * (1 - std::cos(pi / n)));
    check_gap(n, "path", "max_degree", 2.0 / 3.0 * (1 - std::cos(pi / n)));
    check_gap(n, "path", "best_constant", 1 - std::cos(pi / n));
  }
}

TEST_CASE("star") {
  for (const int n : {3, 4, 8, 25}) {
    check_gap(n, "star", "metropolis", 1.0 / n);
    check_gap(n, "star", "best_constant", 2.0 / (n + 1));
  }
  CHECK(test::build(8, "star", "best_constant").matrix(0, 0) < 0.0);
}

TEST_CASE("torus: the longer side decides") {
  for (const int m : {3, 4, 5, 6, 7}) check_gap(m * m, "torus", "uniform", 0.4 * (1 - std::cos(2 * pi / m)));
  check_gap(12, "torus", "uniform", 0.4);
  check_gap(32, "torus", "uniform", 0.4 * (1 - std::cos(2 * pi / 8)));
  check_gap(36, "{name: torus, rows: 3}", "uniform", 0.4 * (1 - std::cos(2 * pi / 12)));
  check_gap(36, "{name: torus, rows: 12}", "uniform", 0.4 * (1 - std::cos(2 * pi / 12)));
}

TEST_CASE("hypercube and complete graph") {
  for (int dimension = 1; dimension <= 7; ++dimension)
    for (const char* rule : {"uniform", "best_constant"})
      check_gap(1 << dimension, "hypercube", rule, 2.0 / (dimension + 1));
  for (const int n : {2, 3, 8, 31})
    for (const char* rule : {"uniform", "metropolis", "max_degree", "best_constant"})
      check_gap(n, "complete", rule, 1.0);
}

TEST_CASE("exponential: the eigenvalues of a circulant matrix are its Fourier sums") {
  for (const int n : {2, 3, 4, 5, 6, 8, 12, 16, 24, 33}) {
    std::set<int> distances;
    for (int d = 1; d < n; d *= 2) {
      distances.insert(d);
      distances.insert(n - d);
    }
    double contraction = 0.0;
    for (int m = 1; m < n; ++m) {
      double sum = 1.0;
      for (const int d : distances) sum += std::cos(2 * pi * m * d / n);
      contraction = std::max(contraction, std::abs(sum) / static_cast<double>(distances.size() + 1));
    }
    check_gap(n, "exponential", "uniform", 1 - contraction);
  }
}

TEST_CASE("one-peer exponential: a period contracts as the product of its Fourier sums") {
  for (const int n : {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 33, 64}) {
    double contraction = 0.0;
    for (int m = 1; m < n; ++m) {
      double product = 1.0;
      for (int d = 1; d < n; d *= 2) product *= std::abs(std::cos(pi * m * d / n));
      contraction = std::max(contraction, product);
    }
    check_gap(n, "one_peer_exponential", "uniform", 1 - contraction);
    const bool exact = (n & (n - 1)) == 0;
    CHECK((test::build(n, "one_peer_exponential", "uniform").spectrum().contraction == 0.0) == exact);
  }
}

TEST_CASE("directed: magnitudes of complex eigenvalues, by powers where there are many ranks") {
  for (const int n : {2, 3, 4, 5, 8, 16, 33}) check_gap(n, "directed_ring", "uniform", 1 - std::cos(pi / n));
  for (const int n : {2, 4, 6, 8, 12, 16, 24, 64})
    check_gap(n, "directed_exponential", "uniform", 2.0 / (1 + std::ceil(std::log2(n))));
  // Ranks that all push to rank 0, too: differences die out as those of what comes by a circle that leaks.
  const test::TextFile leaky("0 1\n1 2\n2 0\n1 0\n");
  const Topology t = test::build(3, "{name: edge_list, directed: true, path: " + leaky.name() + "}", "uniform");
  // W = [1/2 1/3 1/2; 1/2 1/3 0; 0 1/3 1/2]: 1, and the roots of x² − x/3 + 1/12.
  CHECK(t.spectrum().contraction == doctest::Approx(std::sqrt(1.0 / 12)).epsilon(1e-12));
  const double many = test::build(300, "directed_exponential", "uniform").spectrum().gap;
  CHECK(many == doctest::Approx(0.2).epsilon(0.02));
}

TEST_CASE("tabled gaps") {
  check_tabled(8, "ring", "uniform", .195262);
  check_tabled(64, "ring", "best_constant", .004804);
  check_tabled(4, "grid", "metropolis", .666667);
  check_tabled(8, "grid", "metropolis", .146447);
  check_tabled(16, "grid", "metropolis", .131359);
  check_tabled(32, "grid", "metropolis", .034222);
  check_tabled(64, "grid", "metropolis", .032295);
  check_tabled(64, "torus", "uniform", .117157);
}

// Above 256 ranks: Lanczos's iteration instead of all eigenvalues.
TEST_CASE("closed forms hold for thousands of ranks, to the bound that they hold to for few") {
  for (const int n : {257, 1000, 4096}) {
    check_gap(n, "ring", "uniform", 2.0 / 3.0 * (1 - std::cos(2 * pi / n)));
    check_gap(n, "path", "metropolis", 2.0 / 3.0 * (1 - std::cos(pi / n)));
    check_gap(n, "path", "best_constant", 1 - std::cos(pi / n));
    check_gap(n, "star", "metropolis", 1.0 / n);
  }
  check_gap(4096, "torus", "uniform", 0.4 * (1 - std::cos(2 * pi / 64)));
  check_gap(4095, "torus", "uniform", 0.4 * (1 - std::cos(2 * pi / 65)));
  for (const char* rule : {"uniform", "best_constant"}) check_gap(4096, "hypercube", rule, 2.0 / 13);
  check_gap(300, "complete", "uniform", 1.0);
  check_gap(300, "complete", "best_constant", 1.0);
  for (const int n : {300, 4096}) {
    double contraction = 0.0;
    for (int m = 1; m < n; ++m) {
      double product = 1.0;
      for (int d = 1; d < n; d *= 2) product *= std::abs(std::cos(pi * m * d / n));
      contraction = std::max(contraction, product);
    }
    check_gap(n, "one_peer_exponential", "uniform", 1 - contraction);
  }
  CHECK(test::build(4096, "one_peer_exponential", "uniform").spectrum().contraction == 0.0);
}

/// Every eigenvalue that few ranks have is found by the iteration as well.
TEST_CASE("Lanczos's iteration finds what the dense solver finds") {
  for (const char* graph :
       {"ring", "path", "star", "complete", "exponential", "hypercube", "{name: erdos_renyi, seed: 3}"})
    for (const char* rule : {"metropolis", "best_constant"})
      for (const int n : {2, 4, 16, 64, 256}) {
        CAPTURE(graph);
        CAPTURE(rule);
        CAPTURE(n);
        const Topology t = test::build(n, graph, rule);
        const Ends ends = lanczos({n, 2.0, [&](std::span<const double> x, std::span<double> y) {
                                     for (int i = 0; i < n; ++i) {
                                       y[static_cast<std::size_t>(i)] = 0.0;
                                       for (const auto& [j, w] : t.matrix.row(i))
                                         y[static_cast<std::size_t>(i)] += w * x[static_cast<std::size_t>(j)];
                                     }
                                   }});
        CHECK(std::abs(ends.most - t.spectrum().second) < 1e-12);
        CHECK(std::abs(ends.least - t.spectrum().smallest) < 1e-12);
      }
}

TEST_CASE("no eigenvalue is looked for before somebody asks, unless weights may be such that replicas never agree") {
  for (const char* rule : {"uniform", "metropolis", "max_degree"})
    CHECK_FALSE(test::build(64, "ring", rule).solved->spectrum);
  CHECK_FALSE(test::build(64, "one_peer_exponential", "uniform").solved->spectrum);
  CHECK(test::build(64, "star", "best_constant").solved->spectrum);
  const Topology t = test::build(64, "ring", "uniform");
  CHECK(&t.spectrum() == &t.spectrum());
}

namespace {

/// Seconds of the processor, whatever else runs, to build graphs of so many ranks and to ask one of them.
double processor_time(int ranks) {
  const std::clock_t start = std::clock();
  for (const char* graph : {"ring", "torus", "exponential", "hypercube", "one_peer_exponential", "erdos_renyi"})
    CHECK(test::build(ranks, graph, "metropolis").neighbourhood(17).neighbours.size() >= 1);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace

// Random graphs draw every pair; eigenvalues of all ranks, which nobody has asked for, would be 64 times the work.
TEST_CASE("four times the ranks are built in not much more than sixteen times the time") {
  const double one = std::min(processor_time(1024), processor_time(1024)), four = processor_time(4096);
  MESSAGE("1024 ranks: " << one << " s; 4096 ranks: " << four << " s");
  CHECK(four < 40.0 * one);
}

}  // namespace hearsay::spectrum_test
