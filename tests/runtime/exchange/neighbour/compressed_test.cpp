// The laws of beer, motef and cedas: what their papers prove, and equality with their equations in one process.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/exchange/participant.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/stepwise.hpp"

namespace hearsay::compressed_test {
namespace {

using namespace test;

constexpr const char* complete = "topology: {graph: {name: complete}, weights: {name: uniform}}\n";

std::string exchange(const std::string& name, double gamma, double momentum = 0.0) {
  const std::string beta = name == "motef" ? ", momentum: " + std::to_string(momentum) : "";
  return "exchange: {name: " + name + ", gamma: " + std::to_string(gamma) + beta + "}\n";
}
std::string topk(double density) {
  return "sparsify: {selector: {name: topk, density: " + std::to_string(density) + "}}\n";
}

/// The papers' equations in double precision, all ranks in one process. The k largest of a segment are sent as they
/// are.
class Paper {
 public:
  using Vectors = std::vector<std::vector<double>>;
  struct Setup {
    const Layout& layout;
    Vectors weights;
    double gamma, density, rate, momentum;
  };
  Paper(Setup setup, const std::vector<float>& initial)
      : its_(std::move(setup)),
        x_(its_.weights.size(), std::vector<double>(initial.begin(), initial.end())),
        h_(x_),
        y_(x_.size(), std::vector<double>(initial.size())),
        of_y_(y_),
        m_(y_) {}

  void track(Iteration k, const reference::GradientSource& problem) {
    tell(x_, h_);
    tell(y_, of_y_);
    const Vectors g = gradients(k, problem), of_x = moves(h_, its_.gamma), of_y = moves(of_y_, its_.gamma);
    each([&](std::size_t i, std::size_t e) {
      const double before = m_[i][e];
      m_[i][e] = its_.momentum * before + (1.0 - its_.momentum) * g[i][e];
      y_[i][e] += of_y[i][e] + m_[i][e] - before;
      x_[i][e] += of_x[i][e] - its_.rate * y_[i][e];
    });
  }
  /// y is d here.
  void diffuse(Iteration k, const reference::GradientSource& problem) {
    tell(x_, h_);
    const Vectors u = moves(h_, its_.gamma / 2.0);
    each([&](std::size_t i, std::size_t e) { x_[i][e] += u[i][e], y_[i][e] -= u[i][e]; });
    const Vectors g = gradients(k, problem);
    each([&](std::size_t i, std::size_t e) { x_[i][e] -= y_[i][e] + its_.rate * g[i][e]; });
  }
  const Vectors& x() const { return x_; }

 private:
  template <class Do>
  void each(const Do& work) const {
    for (std::size_t i = 0; i < x_.size(); ++i)
      for (std::size_t e = 0; e < x_[i].size(); ++e) work(i, e);
  }
  void tell(const Vectors& values, Vectors& copies) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const Segment& s : its_.layout.segments()) {
        std::vector<std::size_t> order(s.length);
        std::iota(order.begin(), order.end(), s.offset);
        const auto change = [&](std::size_t e) { return std::abs(values[i][e] - copies[i][e]); };
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return change(a) > change(b); });
        order.resize(kept_count(its_.density, s.length));
        for (const std::size_t e : order) copies[i][e] = values[i][e];
      }
  }
  Vectors moves(const Vectors& copies, double gamma) const {
    Vectors sum(copies.size(), std::vector<double>(copies[0].size()));
    each([&](std::size_t i, std::size_t e) {
      for (std::size_t j = 0; j < copies.size(); ++j)
        sum[i][e] += gamma * its_.weights[i][j] * (copies[j][e] - copies[i][e]);
    });
    return sum;
  }
  Vectors gradients(Iteration k, const reference::GradientSource& problem) const {
    Vectors all;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const std::vector<float> at(x_[i].begin(), x_[i].end());
      std::vector<float> g(at.size());
      problem.gradient(static_cast<int>(i), k, at, g);
      all.emplace_back(g.begin(), g.end());
    }
    return all;
  }

  Setup its_;
  Vectors x_, h_, y_, of_y_, m_;
};

TEST_CASE("beer, motef and cedas do what their papers' equations do") {
  constexpr double rate = 0.1, gamma = 0.4;
  constexpr Iteration iterations = 10;  // rounding decides between equally large changes sooner or later
  const Layout layout = reference::small_layout();
  for (const auto& [name, momentum] : {std::pair<std::string, double>{"beer", 0.0}, {"motef", 0.7}, {"cedas", 0.0}})
    for (const double density : {1.0, 0.3})
      for (const int ranks : {1, 2, 5})
        for (const auto& graph : graph_choices()) {
          CAPTURE(name);
          CAPTURE(density);
          CAPTURE(ranks);
          CAPTURE(graph.yaml);
          const reference::Quadratic problem(layout, ranks, 3);
          Paper paper({layout, graph.weights(ranks), gamma, density, rate, momentum}, problem.initial());
          for (Iteration k = 0; k < iterations; ++k)
            name == "cedas" ? paper.diffuse(k, problem) : paper.track(k, problem);
          const JobOutcome job = train_locally(
              graph.yaml + exchange(name, gamma, momentum) + (density < 1.0 ? topk(density) : std::string()), layout,
              problem.initial(), problem,
              {.ranks = ranks, .descent = {.learning_rate = rate}, .iterations = iterations});
          for (std::size_t r = 0; r < job.ranks.size(); ++r)
            for (std::size_t e = 0; e < layout.size(); ++e)
              REQUIRE(job.ranks[r].x[e] == doctest::Approx(paper.x()[r][e]).epsilon(1e-4).scale(0.01));
        }
}

TEST_CASE("compressed trackers sum to the momenta exactly, whatever the compressor keeps") {
  constexpr int unit = 4096;
  const Layout layout = reference::small_layout();
  for (const int ranks : {1, 2, 4})
    for (const double momentum : {0.0, 0.5})
      for (const double density : {1.0, 0.1}) {
        Stepwise job(complete + exchange("motef", 0.5, momentum) + topk(density), layout, ranks,
                     [](int, std::span<float>) {});
        std::vector<double> sum(layout.size());
        for (Iteration k = 0; k < 4; ++k) {
          for (double& m : sum) m *= momentum;
          job.exchange(k, 0.0, [&](int rank, std::span<float> g) {
            whole_numbers(rank, k, unit, g);
            for (std::size_t e = 0; e < g.size(); ++e) sum[e] += (1.0 - momentum) * g[e];
          });
          CHECK(job.sum_of_g() == sum);
          job.step(k, 0.0);
        }
      }
}

TEST_CASE("what cedas takes off the ranks sums to 0 exactly: the mean goes by the gradients alone") {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  for (const int ranks : {2, 4})
    for (const double density : {1.0, 0.1}) {
      std::vector<double> before(layout.size()), after(before);
      std::mutex mutex;
      const auto add = [&](std::span<const float> x, std::vector<double>& sum) {
        const std::lock_guard lock(mutex);
        for (std::size_t e = 0; e < x.size(); ++e) sum[e] += x[e];
      };
      const auto prepare = [&](LocalRank& rank) {
        whole_numbers(rank.rank(), 100, 1 << 15, rank.replica.values.span());
        add(rank.replica.values.span(), before);
      };
      const JobOutcome job = train_locally(complete + exchange("cedas", 1.0) + topk(density), layout, initial,
                                           ZeroGradient(), {.ranks = ranks, .iterations = 3, .prepare = prepare});
      for (const RankOutcome& rank : job.ranks) add(rank.x, after);
      CHECK(after == before);
      CHECK(job.ranks[0].x != job.ranks[1].x);
    }
}

TEST_CASE("with sparse messages and unlike data all ranks reach the minimum of the sum, and CHOCO-SGD does not" *
          doctest::test_suite("arithmetic")) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const std::string choco =
      "exchange: {name: eventgrad, strategy: diffusion, mixing: {name: difference, gamma: 0.3}}\n"
      "trigger: {name: always}\n";
  for (const int ranks : {3, 5, 8}) {
    CAPTURE(ranks);
    const Unlike problem(ranks, layout.size());
    const auto distance = [&](const std::string& yaml) {
      return problem.distance(train_locally(ring + yaml + topk(0.3), layout, initial, problem,
                                            {.ranks = ranks, .descent = {.learning_rate = 0.05}, .iterations = 2000}));
    };
    JobOutcome untrained;
    untrained.ranks.emplace_back().x = initial;
    const double start = problem.distance(untrained);
    for (const std::string name : {"beer", "motef", "cedas"}) {
      CAPTURE(name);
      CHECK(distance(exchange(name, name == "cedas" ? 0.1 : 0.3, 0.7)) < 1e-4 * start);
    }
    if (ranks > 3) CHECK(distance(choco) > 0.01 * start);
  }
}

TEST_CASE("motef without momentum is beer, to the last bit") {
  const Layout layout = reference::small_layout();
  for (const int ranks : {1, 2, 5})
    for (const std::string& sparsify : every_kind_of_body()) {
      if (sparsify.find("dead_zone") != std::string::npos) continue;
      CAPTURE(sparsify);
      const reference::Quadratic problem(layout, ranks, 3);
      const auto train = [&](const std::string& name) {
        return train_locally(ring + exchange(name, 0.3) + "sparsify: " + sparsify + "\n", layout, problem.initial(),
                             problem, {.ranks = ranks});
      };
      const JobOutcome a = train("motef"), b = train("beer");
      for (std::size_t r = 0; r < a.ranks.size(); ++r) CHECK(a.ranks[r].x == b.ranks[r].x);
    }
}

TEST_CASE("trackers are messages of their own: beer has twice those of dpsgd, cedas as many") {
  const Layout layout = reference::small_layout();
  for (const auto& graph : graph_choices()) {
    const reference::Quadratic problem(layout, 5, 3);
    const auto totals = [&](const std::string& yaml) {
      return train_locally(graph.yaml + yaml, layout, problem.initial(), problem, {.ranks = 5}).totals();
    };
    const auto baseline = totals(dpsgd);
    for (const auto& [name, times] : {std::pair<std::string, unsigned>{"beer", 2U}, {"motef", 2U}, {"cedas", 1U}}) {
      CAPTURE(name);
      const auto job = totals(exchange(name, 0.5));
      CHECK(job.messages == times * baseline.messages);
      CHECK(job.payload_bytes == times * baseline.payload_bytes);
      CHECK(job.header_bytes == times * baseline.header_bytes);
      CHECK(totals(exchange(name, 0.5) + topk(0.1)).bytes() < job.bytes() / 3);
    }
  }
}

TEST_CASE("what beer, motef and cedas cannot do is refused with the reason") {
  for (const std::string name : {"beer", "motef", "cedas"}) {
    CAPTURE(name);
    const auto refusal = [&](const std::string& key, const std::string& more = "") {
      try {
        const Plan plan("exchange: {name: " + name + key + "}\n" + more);
      } catch (const ConfigError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    CHECK(refusal("").empty());
    CHECK(refusal(", schedule: asynchronous").find("leave it at lockstep") != std::string::npos);
    CHECK(refusal(", delay: 1").find("unknown key") != std::string::npos);
    CHECK(refusal(", gamma: 0").find("gamma") != std::string::npos);
    CHECK(refusal("", "sparsify: {quantiser: {name: dead_zone}}").find("another sparsify.quantiser") !=
          std::string::npos);
    CHECK_THROWS_WITH_AS(ParticipantPlan(Config::from_text(one_peer + exchange(name, 0.5))),
                         doctest::Contains("changes from iteration to iteration"), ConfigError);
  }
}

}  // namespace
}  // namespace hearsay::compressed_test
