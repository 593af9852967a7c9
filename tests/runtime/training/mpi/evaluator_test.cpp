// The evaluator against what one process computes alone from all replicas, and its promise to leave no trace.
#include "tests/runtime/training/tiny.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/training/model/evaluator.hpp"
#include "tests/support/mpi_environment.hpp"

namespace evaluator_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

/// A network with everything that evaluation could disturb: dropout, normalisation, a layer that stays in evaluation
/// mode.
torch::nn::Sequential small_network() {
  torch::nn::Sequential layers(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 3, 3)), torch::nn::BatchNorm2d(3),
                               torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Dropout(0.5),
                               torch::nn::Linear(3 * 6 * 6, 10));
  return layers;
}

/// The model of `rank`: any process can make any rank's. Values are multiples of 1/64, so that sums of few are exact.
torch::nn::Sequential network_of(int rank) {
  torch::manual_seed(static_cast<std::uint64_t>(100 + rank));
  torch::nn::Sequential layers = small_network();
  const torch::NoGradGuard no_gradient;
  for (auto& p : layers->parameters()) p.copy_((torch::randn_like(p) * 16).round() / 64);
  for (auto& b : layers->buffers())
    if (b.is_floating_point()) b.copy_((torch::rand_like(b) * 64).round() / 64 + 1);
  return layers;
}

struct Fixture {
  Fixture()
      : environment(mpi_environment()),
        ranks(environment.ranks()),
        layers(network_of(environment.rank())),
        model(layers),
        evaluator(model, test_set(image_classification(data)), communicator, engine, ledger) {}
  mpi::Environment& environment;
  int ranks;
  ImageData data = random_image_data(10, 501, 1, 8);
  torch::nn::Sequential layers;
  Model model;
  mpi::Communicator communicator;
  InlineEngine engine{[] { return false; }};
  Ledger ledger{0, 6};
  Evaluator evaluator;
};

std::vector<std::vector<float>> whole_state(const torch::nn::Module& module) {
  std::vector<std::vector<float>> state{parameters_of(module)};
  for (const torch::Tensor& b : module.buffers()) {
    const torch::Tensor flat = b.to(torch::kFloat32).contiguous();
    state.emplace_back(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return state;
}

/// x̄ with averaged buffers, computed by one process.
torch::nn::Sequential mean_network(int ranks) {
  torch::nn::Sequential mean = network_of(0);
  const torch::NoGradGuard no_gradient;
  for (int rank = 1; rank < ranks; ++rank) {
    const torch::nn::Sequential other = network_of(rank);
    auto ours = mean->parameters(), theirs = other->parameters();
    for (std::size_t i = 0; i < ours.size(); ++i) ours[i].add_(theirs[i]);
    ours = mean->buffers(), theirs = other->buffers();
    for (std::size_t i = 0; i < ours.size(); ++i)
      if (ours[i].is_floating_point()) ours[i].add_(theirs[i]);
  }
  for (auto& p : mean->parameters()) p.div_(ranks);
  for (auto& b : mean->buffers())
    if (b.is_floating_point()) b.div_(ranks);
  return mean;
}

Score score_alone(torch::nn::Sequential layers, const ImageData& data) {
  layers->eval();
  return Model(layers).score(test_set(image_classification(data)).batch(0, data.test.size()));
}

TEST_CASE("the averaged model's accuracy, loss and distance are those that one process computes") {
  Fixture f;
  const Evaluator::MeanModel result = f.evaluator.mean_model();
  const Score alone = score_alone(mean_network(f.ranks), f.data);
  CHECK(result.metrics.at(0).value == alone.sums.at(0) / alone.targets);
  CHECK(result.loss == doctest::Approx(alone.loss_sum / alone.targets).epsilon(1e-5));

  const std::vector<float> mean = parameters_of(*mean_network(f.ranks));
  double squares = 0.0;
  for (int rank = 0; rank < f.ranks; ++rank) {
    const std::vector<float> own = parameters_of(*network_of(rank));
    for (std::size_t i = 0; i < own.size(); ++i) squares += std::pow(double{own[i]} - double{mean[i]}, 2);
  }
  CHECK(result.consensus_distance == doctest::Approx(std::sqrt(squares / f.ranks)).epsilon(1e-6));
  CHECK((f.ranks == 1) == (result.consensus_distance == 0.0));
}

TEST_CASE("inputs of the test set that are no numbers are told as such") {
  Fixture f;
  f.evaluator.require_finite_inputs();
  TestSet wrong = test_set(image_classification(f.data));
  wrong.batch = [whole = wrong.batch](std::size_t first, std::size_t count) {
    constexpr std::size_t at = 321;
    Batch batch = whole(first, count);
    if (first > at || first + count <= at) return batch;
    batch.inputs = batch.inputs.clone();
    batch.inputs[static_cast<std::int64_t>(at - first)].fill_(std::nan(""));
    return batch;
  };
  const Evaluator evaluator(f.model, wrong, f.communicator, f.engine, f.ledger);
  CHECK_THROWS_WITH_AS(evaluator.require_finite_inputs(), doctest::Contains("test examples 200 to 399 inputs are NaN"),
                       DataError);
}

TEST_CASE("minimum and mean over ranks are those of every rank's own model") {
  Fixture f;
  const Evaluator::Ranks result = f.evaluator.every_rank();
  double sum = 0.0, minimum = 1.0;
  for (int rank = 0; rank < f.ranks; ++rank) {
    const Score own = score_alone(network_of(rank), f.data);
    sum += own.sums.at(0) / own.targets;
    minimum = std::min(minimum, own.sums.at(0) / own.targets);
  }
  CHECK(result.worst.at(0).value == minimum);
  CHECK(result.mean.at(0).value == doctest::Approx(sum / f.ranks).epsilon(1e-12));
}

TEST_CASE("the worst rank by a loss is the one that has the highest, and each metric has its own") {
  Fixture f;
  DataSet data = image_classification(f.data);
  data.metrics = {loss_metric(), accuracy_metric(), perplexity_metric()};
  f.model.learn_by_default(objective_for(data, 0.0));
  const Evaluator::Ranks result = f.evaluator.every_rank();
  const Evaluator::MeanModel mean = f.evaluator.mean_model();
  double highest = 0.0, least_correct = 1.0;
  for (int rank = 0; rank < f.ranks; ++rank) {
    const Score own = score_alone(network_of(rank), f.data);
    highest = std::max(highest, own.loss_sum / own.targets);
    least_correct = std::min(least_correct, own.sums.at(0) / own.targets);
  }
  REQUIRE(result.worst.size() == 3);
  CHECK(result.worst[0].value == doctest::Approx(highest).epsilon(1e-5));
  CHECK(result.worst[1].value == least_correct);
  CHECK(result.worst[2].value == doctest::Approx(std::exp(highest)).epsilon(1e-4));
  CHECK(result.worst[0].value >= result.mean[0].value);
  CHECK(mean.metrics.at(0).value == mean.loss);
  CHECK(mean.metrics.at(2).value == doctest::Approx(std::exp(mean.loss)).epsilon(1e-9));
}

TEST_CASE("evaluation leaves parameters, gradients, buffers, modes and the generator as they were") {
  Fixture f;
  f.layers->train();
  f.layers[1]->as<torch::nn::BatchNorm2d>()->eval();  // a user who freezes normalisation
  f.model.loss_and_gradient(random_batch(5, 1, 8));
  torch::manual_seed(77);
  const auto state = whole_state(*f.layers);
  const auto gradient = copy_of(f.model.replica().gradients.span());
  f.evaluator.mean_model();
  f.evaluator.every_rank();
  const auto file =
      std::filesystem::temp_directory_path() / ("hearsay_evaluator_test_" + std::to_string(f.ranks) + ".pt");
  f.evaluator.save_mean_model(file);
  CHECK(whole_state(*f.layers) == state);
  CHECK(copy_of(f.model.replica().gradients.span()) == gradient);
  CHECK(f.layers->is_training());
  CHECK_FALSE(f.layers[1]->is_training());
  CHECK(f.layers[4]->is_training());
  const torch::Tensor drawn = torch::rand({8});
  torch::manual_seed(77);
  CHECK(torch::equal(drawn, torch::rand({8})));
  CHECK(f.ledger.seconds(Phase::evaluate) > 0.0);
  if (f.environment.rank() > 0) return;
  torch::nn::Sequential saved = small_network();
  torch::load(saved, file.string());
  std::filesystem::remove(file);
  CHECK(whole_state(*saved) == whole_state(*mean_network(f.ranks)));
}

TEST_CASE("a network that draws and counts in evaluation leaves no trace either") {
  struct NoisyImpl : torch::nn::Module {
    NoisyImpl() : w(register_parameter("w", torch::ones({10}))), calls(register_buffer("calls", torch::zeros({1}))) {}
    torch::Tensor forward(const torch::Tensor& x) {
      calls.add_(1.0);
      return x.flatten(1).narrow(1, 0, 10) * w + torch::randn({x.size(0), 10});
    }
    torch::Tensor w, calls;
  };
  Fixture f;
  Model model(std::make_shared<NoisyImpl>());
  Evaluator evaluator(model, test_set(image_classification(f.data)), f.communicator, f.engine, f.ledger);
  torch::manual_seed(5);
  evaluator.mean_model();
  evaluator.every_rank();
  CHECK(model.other_state()[0].item<float>() == 0.0F);
  const torch::Tensor drawn = torch::rand({8});
  torch::manual_seed(5);
  CHECK(torch::equal(drawn, torch::rand({8})));
}

}  // namespace
}  // namespace evaluator_test
