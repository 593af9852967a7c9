// muon against plain loops in double precision; which tensors it takes; what it says of its steps; skewed shares.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "runtime/training/model/optimizer.hpp"
#include "tests/support/local_ranks.hpp"

namespace muon_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

std::unique_ptr<OptimizerPlan> plan_of(const std::string& section) {
  Config config = Config::from_text(section);
  auto plan = chosen_entry(optimizers(), config, "sgd", "the optimizer").make(config);
  config.document().throw_if_invalid();
  return plan;
}

// ---------------------------------------------------------------- plain loops

using Doubles = std::vector<double>;

struct Plain {
  std::size_t rows, columns;
  Doubles at;
  double operator()(std::size_t i, std::size_t j) const { return at[i * columns + j]; }
};

Plain product(const Plain& left, const Plain& right) {
  Plain made{left.rows, right.columns, Doubles(left.rows * right.columns)};
  for (std::size_t i = 0; i < left.rows; ++i)
    for (std::size_t j = 0; j < right.columns; ++j)
      for (std::size_t k = 0; k < left.columns; ++k) made.at[i * right.columns + j] += left(i, k) * right(k, j);
  return made;
}

Plain transposed(const Plain& of) {
  Plain made{of.columns, of.rows, Doubles(of.at.size())};
  for (std::size_t i = 0; i < of.rows; ++i)
    for (std::size_t j = 0; j < of.columns; ++j) made.at[j * of.rows + i] = of(i, j);
  return made;
}

/// As jordan2024muon has it.
Plain newton_schulz(Plain u) {
  const bool tall = u.rows > u.columns;
  if (tall) u = transposed(u);
  double square = 0.0;
  for (const double v : u.at) square += v * v;
  for (double& v : u.at) v /= std::sqrt(square) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    const Plain gram = product(u, transposed(u)), gram_u = product(gram, u), gram_gram_u = product(gram, gram_u);
    for (std::size_t i = 0; i < u.at.size(); ++i)
      u.at[i] = 3.4445 * u.at[i] - 4.7750 * gram_u.at[i] + 2.0315 * gram_gram_u.at[i];
  }
  return tall ? transposed(u) : u;
}

struct Rates {
  double eta, of_others;
};

/// One tensor under muon, or under adamw where it has no rows.
struct Reference {
  std::size_t rows = 0;
  Doubles x, m, v;
  std::int64_t k = 0;

  void step(const Doubles& g, Rates rates, bool nesterov, bool original, double decay_of_others) {
    ++k;
    if (rows > 0)
      move_matrix(g, rates.eta, nesterov, original);
    else
      move_others(g, rates.of_others, decay_of_others);
  }

 private:
  void move_matrix(const Doubles& g, double eta, bool nesterov, bool original) {
    Plain u{rows, x.size() / rows, Doubles(x.size())};
    for (std::size_t i = 0; i < x.size(); ++i) {
      m[i] = 0.95 * m[i] + g[i];
      u.at[i] = nesterov ? g[i] + 0.95 * m[i] : m[i];
    }
    const Plain o = newton_schulz(u);
    const auto r = static_cast<double>(u.rows), c = static_cast<double>(u.columns);
    const double s = original ? std::sqrt(std::max(1.0, r / c)) : 0.2 * std::sqrt(std::max(r, c));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = (1.0 - eta * 0.1) * x[i] - eta * s * o.at[i];
  }
  void move_others(const Doubles& g, double eta, double decay) {
    const double b1 = 0.9, b2 = 0.99, n = static_cast<double>(k);
    for (std::size_t i = 0; i < x.size(); ++i) {
      m[i] = b1 * m[i] + (1.0 - b1) * g[i];
      v[i] = b2 * v[i] + (1.0 - b2) * g[i] * g[i];
      x[i] *= 1.0 - eta * decay;
      x[i] -= eta * (m[i] / (1.0 - std::pow(b1, n))) / (std::sqrt(v[i] / (1.0 - std::pow(b2, n))) + 1e-8);
    }
  }
};

/// All kinds of tensors. Nobody computes with it: gradients are given.
struct KindsImpl : torch::nn::Module {
  KindsImpl()
      : table(register_module("table", torch::nn::Embedding(10, 8))),
        wide(register_module("wide", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 6, 3)))),
        tall(register_module("tall", torch::nn::Linear(8, 24))),
        square(register_module("square", torch::nn::Linear(7, 9))),
        head(register_module("head", torch::nn::Linear(8, 10))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x; }
  torch::nn::Embedding table;
  torch::nn::Conv2d wide;
  torch::nn::Linear tall, square, head;
};

/// A model's x by tensors, in double precision.
std::vector<Reference> references(Model& model, const std::map<std::string, std::size_t>& rows) {
  std::vector<Reference> made;
  const Layout& layout = model.replica().layout;
  for (SegmentId s = 0; s < layout.count(); ++s) {
    const auto x = model.replica().values.segment(layout[s]);
    const auto found = rows.find(layout[s].name);
    made.push_back({.rows = found == rows.end() ? 0 : found->second,
                    .x = {x.begin(), x.end()},
                    .m = Doubles(x.size()),
                    .v = Doubles(x.size())});
  }
  return made;
}

/// The gradient of h (x − c)²/2, h and c of every value's own, with noise of every iteration's own.
double gradient(double x, SegmentId s, std::size_t i, std::int64_t k) {
  Random of_value(1000 * s + i), of_now((1000 * s + i) * 1000 + static_cast<std::uint64_t>(k));
  const double h = 0.5 + of_value.uniform(), c = 2.0 * of_value.uniform() - 1.0;
  return h * (x - c) + 0.5 * (of_now.uniform() - 0.5);
}

TEST_CASE("fifty steps are those of the published formulas in double precision, to 1e-5") {
  struct Setting {
    std::string keys;
    bool nesterov, original;
    double decay_of_others;
  };
  for (const Setting& setting : {Setting{"", true, false, 0.1},
                                 {"nesterov: false, ", false, false, 0.1},
                                 {"scale: original, decay_matrices_only: true, ", true, true, 0.0}}) {
    CAPTURE(setting.keys);
    torch::manual_seed(5);
    Model model(std::make_shared<KindsImpl>());
    const Layout& layout = model.replica().layout;
    const auto optimizer =
        plan_of("{name: muon, learning_rate: 0.005, " + setting.keys + "others: {learning_rate: 0.02, beta2: 0.99}}")
            ->build(model);
    auto tensors = references(model, {{"wide.weight", 6}, {"tall.weight", 24}, {"square.weight", 9}});
    std::vector<double> farthest(layout.count());
    for (std::int64_t k = 0; k < 50; ++k) {
      const double part = 1.0 - 0.01 * static_cast<double>(k);
      optimizer->set_learning_rate(0.005 * part);
      for (SegmentId s = 0; s < layout.count(); ++s) {
        const auto x = model.replica().values.segment(layout[s]);
        const auto g = model.replica().gradients.segment(layout[s]);
        Doubles exact(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          exact[i] = gradient(tensors[s].x[i], s, i, k);
          g[i] = static_cast<float>(gradient(x[i], s, i, k));
        }
        const bool is_bias = layout[s].shape.size() < 2;
        tensors[s].step(exact, {0.005 * part, 0.02 * part}, setting.nesterov, setting.original,
                        is_bias ? setting.decay_of_others : 0.1);
      }
      optimizer->step();
      for (SegmentId s = 0; s < layout.count(); ++s)
        for (std::size_t i = 0; i < layout[s].length; ++i)
          farthest[s] = std::max(farthest[s], std::abs(model.replica().values.segment(layout[s])[i] - tensors[s].x[i]));
    }
    for (SegmentId s = 0; s < layout.count(); ++s) {
      CAPTURE(layout[s].name);
      CHECK(farthest[s] <= 1e-5);
    }
  }
}

// ---------------------------------------------------------------- which tensors

/// Those that are moved as matrices, by what the optimizer says of its steps.
std::vector<std::string> matrices_of(Model& model, const std::string& more = "") {
  const auto plan = plan_of("{name: muon, learning_rate: 0.5, others: {learning_rate: 0.25" + more + "}}");
  const auto optimizer = plan->build(model);
  optimizer->set_learning_rate(0.25);
  const auto steps = optimizer->steps();
  std::vector<std::string> names;
  for (SegmentId s = 0; s < steps.size(); ++s) {
    const bool matrix = steps[s].momentum == 0.95;
    CHECK(*steps[s].learning_rate == doctest::Approx(matrix ? 0.2 * 0.25 : 0.125));
    if (matrix) names.push_back(model.replica().layout[s].name);
  }
  return names;
}

TEST_CASE("embeddings, the head and what has one dimension are not moved as matrices") {
  using Names = std::vector<std::string>;
  Model kinds(std::make_shared<KindsImpl>());
  CHECK(matrices_of(kinds) == Names{"wide.weight", "tall.weight", "square.weight"});
  CHECK(matrices_of(kinds, ", layers: tall wide") == Names{"square.weight"});
  CHECK_THROWS_WITH_AS(matrices_of(kinds, ", layers: talk"), doctest::Contains("no layer 'talk'"), ConfigError);
  Model classifier = model_named("{name: mnist_cnn}", 1, 28);
  CHECK(matrices_of(classifier) == Names{"conv1.weight", "conv2.weight", "fc1.weight"});
  Model mlp = model_named("{name: mlp, hidden: []}", 1, 4);
  CHECK(matrices_of(mlp).empty());  // its only matrix is the head
}

TEST_CASE("memory is a block of the matrices, two of the rest, and the largest matrix at work") {
  Model model(std::make_shared<KindsImpl>());
  const std::size_t matrices = 6 * 18 + 24 * 8 + 9 * 7, all = model.replica().layout.size();
  const std::size_t work = 3 * 24 * 8 + 4 * 8 * 8;
  CHECK(plan_of("{name: muon}")->kept_bytes(model) == (matrices + 2 * (all - matrices) + work) * sizeof(float));
  CHECK(plan_of("{name: adamw}")->kept_bytes(model) == 2 * all * sizeof(float));
}

TEST_CASE("a matrix moves by the direction of its gradient alone; a gradient of 0 leaves it, but for decay") {
  const auto moved = [](float length) {
    torch::manual_seed(5);
    Model model(std::make_shared<KindsImpl>());
    const Segment& tall = model.replica().layout[3];
    REQUIRE(tall.name == "tall.weight");
    const auto optimizer = plan_of("{name: muon, learning_rate: 0.5, weight_decay: 1}")->build(model);
    const auto g = model.replica().gradients.segment(tall);
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = length * static_cast<float>(1 + i * i % 7);
    const std::vector<float> before = copy_of(model.replica().values.segment(tall));
    optimizer->step();
    std::vector<float> by = copy_of(model.replica().values.segment(tall));
    for (std::size_t i = 0; i < by.size(); ++i) by[i] -= 0.5F * before[i];
    return by;
  };
  for (const float v : moved(0.0F)) CHECK(v == 0.0F);
  const auto small = moved(0.25F), large = moved(1024.0F);
  for (std::size_t i = 0; i < small.size(); ++i) CHECK(small[i] == doctest::Approx(large[i]).epsilon(1e-4));
}

TEST_CASE("a state that is loaded goes on bit for bit") {
  const auto steps = [](Model& model, Optimizer& optimizer, std::int64_t from, std::int64_t to) {
    for (std::int64_t k = from; k < to; ++k) {
      for (std::size_t i = 0; i < model.replica().layout.size(); ++i)
        model.replica().gradients.span()[i] = static_cast<float>(gradient(model.replica().values.span()[i], 0, i, k));
      optimizer.step();
    }
  };
  const auto plan = plan_of("{name: muon, clip_norm: 1}");
  Model whole(std::make_shared<KindsImpl>()), resumed(std::make_shared<KindsImpl>());
  const auto first = plan->build(whole), second = plan->build(resumed);
  steps(whole, *first, 0, 3);
  RawBytes bytes;
  Archive saving = Archive::saving(bytes);
  first->state(saving);
  Archive loading = Archive::loading({bytes.data(), bytes.size()}, "a state");
  second->state(loading);
  std::ranges::copy(whole.replica().values.span(), resumed.replica().values.span().begin());
  steps(whole, *first, 3, 6), steps(resumed, *second, 3, 6);
  CHECK(copy_of(whole.replica().values.span()) == copy_of(resumed.replica().values.span()));
}

// ---------------------------------------------------------------- skewed shares

/// One matrix; a second one beside it that is its head, of a single value.
struct OneImpl : torch::nn::Module {
  OneImpl()
      : body(register_parameter("body", torch::zeros({8, 12}))),
        head(register_parameter("head", torch::zeros({1, 1}))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x; }
  torch::Tensor body, head;
};

constexpr int ranks = 4;

/// Every rank has h (x − c)²/2 with h and c of its own.
struct Share {
  double h, c;
};
Share share_of(int rank, std::size_t i) {
  Random random(static_cast<std::uint64_t>(rank) * 1000 + i);
  return {.h = 0.5 + random.uniform(), .c = 2.0 * random.uniform() - 1.0};
}

/// How far the mean model of four ranks on a ring ends from the minimum of the sum; root mean square over the matrix.
double distance_after(Iteration iterations, const std::string& exchange) {
  const ParticipantPlan plan(Config::from_text("{topology: {graph: {name: ring}}, exchange: " + exchange + "}"));
  const auto topology = plan.topology(ranks);
  const auto optimizer_plan = plan_of("{name: muon, weight_decay: 0}");
  std::vector<Model> models;
  for (int r = 0; r < ranks; ++r) models.emplace_back(std::make_shared<OneImpl>());
  const Layout& layout = models[0].replica().layout;
  const LocalJob job{.topology = *topology,
                     .layout = layout,
                     .initial = models[0].replica().values.span(),
                     .plan = plan.exchange(),
                     .step = {}};
  LocalWorld world(job);
  std::vector<std::unique_ptr<LocalRank>> members;
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (int r = 0; r < ranks; ++r) {
    members.push_back(world.make_rank(r));
    optimizers.push_back(optimizer_plan->build(models[static_cast<std::size_t>(r)]));
  }
  for (Iteration k = 0; k < iterations; ++k) {
    for (auto& member : members) member->member.start(k);
    const double rate = 0.03 * (1.0 - static_cast<double>(k) / static_cast<double>(iterations));
    for (std::size_t r = 0; r < members.size(); ++r) {
      Parameters &here = members[r]->replica, &there = models[r].replica();
      for (std::size_t i = 0; i < layout.size(); ++i) {
        const Share share = share_of(static_cast<int>(r), i);
        here.gradients.span()[i] = static_cast<float>(share.h * (here.values.span()[i] - share.c));
      }
      optimizers[r]->set_learning_rate(rate);
      members[r]->member.steps(optimizers[r]->steps());
      members[r]->member.finish(k);
      std::ranges::copy(here.values.span(), there.values.span().begin());
      std::ranges::copy(here.gradients.span(), there.gradients.span().begin());
      optimizers[r]->step();
      std::ranges::copy(there.values.span(), here.values.span().begin());
      members[r]->member.stepped(k);
    }
  }
  const Segment& body = layout[0];
  double squares = 0.0;
  for (std::size_t i = 0; i < body.length; ++i) {
    double mean = 0.0, of_h = 0.0, of_hc = 0.0;
    for (int r = 0; r < ranks; ++r) {
      const Share share = share_of(r, i);
      mean += members[static_cast<std::size_t>(r)]->replica.values.span()[i] / ranks;
      of_h += share.h, of_hc += share.h * share.c;
    }
    squares += std::pow(mean - of_hc / of_h, 2);
  }
  return std::sqrt(squares / static_cast<double>(body.length));
}

// Each rank's own direction is not the direction of the sum, and directions do not average to it.
TEST_CASE("ranks with unlike shares reach the minimum of the sum where the drift is taken off before the direction") {
  const double without = distance_after(2000, "{name: dpsgd}");
  CHECK(without > 0.05);
  CHECK(distance_after(4000, "{name: dpsgd, correction: {name: drift}}") < 0.01 * without);
}

}  // namespace
}  // namespace muon_test
