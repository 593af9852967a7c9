// The training loop, learning rates and the plan of a run: no LibTorch in here.
#include "runtime/training/trainer.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/training/run_plan.hpp"
#include "tests/support/local_ranks.hpp"

namespace trainer_test {
namespace {

using namespace hearsay;

using Calls = std::vector<std::string>;

/// What the loop asks of the exchange goes into the list; iteration `diverge_at` does not start.
struct Recording {
  Calls calls;
  Iteration diverge_at = -1;
  DivergenceError finding{"segment 'w': the norm is nan"};
};

struct RecordingExchange final : Exchange {
  explicit RecordingExchange(Recording& r) : record(r) {}
  void start(Iteration k) override {
    if (k == record.diverge_at) throw record.finding;
    record.calls.push_back("start " + std::to_string(k));
  }
  void finish(Iteration k) override { record.calls.push_back("finish " + std::to_string(k)); }
  void stepped(Iteration k) override { record.calls.push_back("stepped " + std::to_string(k)); }
  Recording& record;
};

struct RecordingPlan final : ExchangePlan {
  explicit RecordingPlan(Recording& r) : record(r) {}
  std::size_t packet_bound(const Layout&, int) const override { return 0; }
  std::size_t kept_bytes(const Layout&, std::size_t, int) const override { return 0; }
  std::unique_ptr<Exchange> build(const ExchangeContext&) const override {
    return std::make_unique<RecordingExchange>(record);
  }
  Schedule schedule() const override { return Schedule::lockstep; }
  ExchangeLaws laws() const override { return {}; }
  Recording& record;
};

struct RecordingOptimizer final : Optimizer {
  explicit RecordingOptimizer(Calls& c) : calls(c) {}
  void step() override { calls.push_back("step"); }
  void set_learning_rate(double rate) override { rates.push_back(rate); }
  std::vector<StepResponse> steps() const override { return {}; }
  void state(Archive&) override {}
  Calls& calls;
  std::vector<double> rates;
};

/// A run without a model: the losses are given.
struct Rehearsal {
  explicit Rehearsal(std::vector<double> given, const std::string& optimizer_section = "{}")
      : losses(std::move(given)), config(Config::from_text(optimizer_section)) {}

  Iteration run(
      Iteration iterations, const Trainer::Observer& observe = [](Iteration, double) { return true; }) {
    return run({.iterations_per_epoch = 2, .iterations = iterations}, observe);
  }
  Iteration run(
      const RunLength& length, const Trainer::Observer& observe = [](Iteration, double) { return true; }) {
    Trainer trainer({.participant = rank->member,
                     .loss_and_gradient =
                         [this] {
                           record.calls.push_back("gradient");
                           return losses.at(next++);
                         },
                     .optimizer = optimizer,
                     .learning_rate = learning_rate,
                     .rank = 3});
    const Iteration done = trainer.run(length, observe, [] { return true; });
    CHECK(done == trainer.iterations_done());
    return done;
  }

  std::vector<double> losses;
  std::size_t next = 0;
  Recording record;
  RecordingPlan plan{record};
  RecordingOptimizer optimizer{record.calls};
  Config config;
  LearningRate learning_rate{config, 0.5};
  // A job of one rank.
  Topology topology = TopologyPlan::everybody().build(1);
  Layout layout;
  test::LocalJob job{.topology = topology, .layout = layout, .initial = {}, .plan = plan};
  test::LocalWorld world{job};
  std::unique_ptr<test::LocalRank> rank = world.make_rank(0);
};

TEST_CASE("an iteration is start, gradient, finish, step, stepped") {
  Rehearsal rehearsal({1.0, 2.0});
  std::vector<std::pair<Iteration, double>> observed;
  CHECK(rehearsal.run(2, [&](Iteration k, double loss) {
    observed.emplace_back(k, loss);
    return true;
  }) == 2);
  CHECK(rehearsal.record.calls == Calls{"start 0", "gradient", "finish 0", "step", "stepped 0",  //
                                        "start 1", "gradient", "finish 1", "step", "stepped 1"});
  CHECK(observed == std::vector<std::pair<Iteration, double>>{{0, 1.0}, {1, 2.0}});
}

TEST_CASE("of a job's budget whole rounds are done, so many that the budget is met within half of one") {
  const auto done = [](Iteration iterations, Iteration round) {
    Rehearsal rehearsal(std::vector<double>(20, 1.0));
    return rehearsal.run(RunLength{.iterations = iterations, .budget = RunLength::Budget::job, .round = round});
  };
  for (Iteration iterations = 4; iterations < 16; ++iterations) {
    CAPTURE(iterations);
    CHECK(done(iterations, 1) == iterations);
    CHECK(done(iterations, 4) % 4 == 0);
    CHECK(std::abs(done(iterations, 4) - iterations) <= 2);
  }
  CHECK(done(3, 4) == 3);  // less than one round
}

TEST_CASE("the observer ends training after the iteration that it was told of") {
  Rehearsal rehearsal({1.0, 2.0, 3.0});
  CHECK(rehearsal.run(3, [](Iteration k, double) { return k < 1; }) == 2);
  CHECK(rehearsal.record.calls.back() == "stepped 1");
}

TEST_CASE("a loss or a norm that is not finite ends training before the step and says where") {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Rehearsal rehearsal({0.25, bad});
    CHECK_THROWS_WITH_AS(rehearsal.run(5), doctest::Contains("rank 3 diverged at iteration 1: the loss is"),
                         DivergenceError);
    CHECK(rehearsal.record.calls.back() == "gradient");
  }
  Rehearsal rehearsal({0.25, 0.75, 1.0});
  rehearsal.record.diverge_at = 2;
  CHECK_THROWS_WITH_AS(
      rehearsal.run(5),
      doctest::Contains("iteration 2: segment 'w': the norm is nan; in epoch 1, the last finite loss was "
                        "0.75 at iteration 1; lower optimizer.learning_rate"),
      DivergenceError);
}

// Whoever throws says whether the rank and the iteration are named; words like "rank " or "Lower" in a finding, which
// may hold a parameter's name, change nothing.
TEST_CASE("a divergence is told of its rank and iteration once, and has one remedy, whatever its words are") {
  for (const auto place : {DivergenceError::Place::missing, DivergenceError::Place::said}) {
    Rehearsal rehearsal({0.25, 0.75});
    rehearsal.record.diverge_at = 1;
    rehearsal.record.finding = DivergenceError("rank of 'Lower ' is nan", place);
    std::string said;
    try {
      rehearsal.run(5);
    } catch (const DivergenceError& error) {
      said = error.what();
    }
    const std::string begins = place == DivergenceError::Place::said ? "" : "rank 0 diverged at iteration 1: ";
    CAPTURE(said);
    CHECK(said.starts_with(begins + "rank of 'Lower ' is nan; in epoch 0.5, "));
    CHECK(said.find("; lower optimizer.learning_rate") != std::string::npos);
    CHECK(said.find("; lower the learning rate") == std::string::npos);
  }
}

TEST_CASE("the learning rate is base times warm-up times schedule") {
  Rehearsal step({1, 1, 1, 1, 1, 1}, "{warmup_epochs: 1, schedule: {name: step, milestones: [1.5, 2.5], factor: 0.5}}");
  step.run(6);
  CHECK(step.optimizer.rates == std::vector<double>{0.0, 0.25, 0.5, 0.25, 0.25, 0.125});
  Rehearsal constant({1, 1, 1});
  constant.run(3);
  CHECK(constant.optimizer.rates == std::vector<double>{0.5, 0.5, 0.5});
}

TEST_CASE("schedules: closed forms, in [0, 1], never rising") {
  for (const auto& entry : learning_rate_schedules()) {
    Config config = Config::from_text(entry.name == "step" ? "{milestones: [3, 7]}" : "{floor: 0.25}");
    const auto schedule = entry.make(config);
    CHECK(rc::check(std::string(entry.name), [&] {
      const double epochs = *rc::gen::inRange(1, 1000) * 0.01;
      const double a = epochs * *rc::gen::inRange(0, 1001) * 0.001;
      const double b = epochs * *rc::gen::inRange(0, 1001) * 0.001;
      const double early = schedule->factor(std::min(a, b), epochs), late = schedule->factor(std::max(a, b), epochs);
      RC_ASSERT(schedule->factor(0.0, epochs) == 1.0);
      RC_ASSERT(late >= 0.0);
      RC_ASSERT(early <= 1.0);
      RC_ASSERT(late <= early);
      if (entry.name == "cosine")
        RC_ASSERT(std::abs(early - (0.625 + 0.375 * std::cos(std::numbers::pi * std::min(a, b) / epochs))) < 1e-12);
    }));
  }
}

TEST_CASE("a step schedule without ascending milestones is an error") {
  for (const char* section : {"{schedule: {name: step}}", "{schedule: {name: step, milestones: [3, 2]}}"}) {
    Config config = Config::from_text(section);
    const LearningRate rate(config, 1.0);
    CHECK_THROWS_AS(config.document().throw_if_invalid(), ConfigError);
  }
}

// ---------------------------------------------------------------- RunPlan

Task task_without_model() {
  Task task;
  task.model_name = "none", task.dataset_name = "none";
  return task;
}

TEST_CASE("an empty configuration is a whole run, and its dump gives the same plan") {
  const RunPlan plan(Config(), task_without_model());
  CHECK(plan.parts().exchange_name == "eventgrad");
  CHECK(plan.parts().batch_size == 64);
  CHECK(plan.parts().epochs == 10);
  CHECK(plan.parts().evaluate_every_epochs == 1);
  CHECK(plan.parts().optimizer->learning_rate() == 0.05);
  CHECK(plan.report().directory == "runs/eventgrad-none");
  const RunPlan again(Config::from_text(plan.config_yaml()), task_without_model());
  CHECK(again.config_yaml() == plan.config_yaml());
}

TEST_CASE("asynchronous ranks share a budget and are evaluated on their way; lockstep ranks have one each") {
  const RunPlan plan(Config::from_text("exchange: {schedule: asynchronous}"), task_without_model());
  CHECK(plan.parts().budget == RunLength::Budget::job);
  CHECK(plan.length(100, 1).round == 1);
  const RunPlan rounds(Config::from_text("exchange: {name: gossip_outer, schedule: asynchronous, local_steps: 7}"),
                       task_without_model());
  CHECK(rounds.length(100, 1).round == 7);
  CHECK(plan.parts().evaluate_every_epochs == 1);
  CHECK_THROWS_WITH_AS(RunPlan(Config::from_text("train: {budget: job}"), task_without_model()),
                       doctest::Contains("schedule: asynchronous"), ConfigError);
  const RunPlan asked(Config::from_text("{exchange: {schedule: asynchronous}, train: {evaluate_every_epochs: 3}}"),
                      task_without_model());
  CHECK(asked.parts().evaluate_every_epochs == 3);
}

TEST_CASE("an epoch is a pass over the data of all ranks together") {
  const RunPlan plan(Config::from_text("{data: {batch_size: 10}, train: {epochs: 3}}"), task_without_model());
  CHECK(plan.length(100, 1).iterations == 30);
  CHECK(plan.length(101, 1).iterations_per_epoch == 11);
  CHECK(plan.length(101, 4).iterations_per_epoch == 3);  // 26 examples a rank
  CHECK(plan.length(3, 4).iterations == 3);
  const RunPlan capped(Config::from_text("{data: {batch_size: 10}, train: {epochs: 3, iterations: 7}}"),
                       task_without_model());
  CHECK(capped.length(100, 1).iterations == 7);
  CHECK(capped.length(20, 1).iterations == 6);
}

TEST_CASE("all mistakes of a configuration are reported at once") {
  const char* const text =
      "data: {batch_size: 0}\n"
      "optimizer: {name: sdg}\n"
      "train: {epochs: 0, treads: 2}\n"
      "seeds: 3\n";
  try {
    const RunPlan plan(Config::from_text(text), task_without_model());
    FAIL("accepted");
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    for (const char* part :
         {"data.batch_size", "did you mean 'sgd'", "train.epochs", "did you mean 'threads'", "did you mean 'seed'"}) {
      CAPTURE(part);
      CHECK(message.find(part) != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace trainer_test
