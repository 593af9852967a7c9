// What Hearsay adds to a training step: the same network, batches and optimizer in a bare LibTorch loop and under an
// exchange, in turns within one run, so that a busy machine hits both.
//
//   mpirun -n 1 training_overhead                                     EventGraD, all machinery on, no neighbours
//   mpirun -n 4 --oversubscribe training_overhead                     beside 4 bare loops that know nothing of each
//   other mpirun -n 4 --oversubscribe training_overhead --exchange dpsgd --schedule lockstep
//
// A block is a fixed number of iterations between two barriers; its time is that of the slowest rank. Printed: medians
// over the blocks, and the median of the ratios of neighbouring blocks. Expected: ratio ≤ 1.05 at P = 1, ≤ 1.15 at P =
// 4 on two cores.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "runtime/algorithms/exchange.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/peers.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/training/batches.hpp"
#include "runtime/training/model.hpp"
#include "runtime/training/threads.hpp"

namespace {

using namespace hearsay;

struct Options {
  std::string exchange = "eventgrad", schedule = "asynchronous", trigger = "adaptive";
  int iterations = 50, blocks = 15;
};

// The network of configs/mnist, defined here a second time so that the bare loop shares nothing with Hearsay.
struct NetImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{register_module("conv1", torch::nn::Conv2d(1, 10, 3))};
  torch::nn::Conv2d conv2{register_module("conv2", torch::nn::Conv2d(10, 20, 3))};
  torch::nn::Linear fc1{register_module("fc1", torch::nn::Linear(500, 50))};
  torch::nn::Linear fc2{register_module("fc2", torch::nn::Linear(50, 10))};
  torch::nn::Dropout2d maps{register_module("maps", torch::nn::Dropout2d(0.5))};
  torch::nn::Dropout units{register_module("units", torch::nn::Dropout(0.5))};
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(maps(conv2(x)), 2));
    return fc2(units(torch::relu(fc1(x.flatten(1)))));
  }
};
TORCH_MODULE(Net);

std::vector<Batch> make_batches() {
  Config section;
  const ImageData data = chosen_entry(datasets(), section, "synthetic_digits", "").make(section, 1)->load();
  std::vector<Batch> batches;
  ImageBuffer buffer(data, data.train);
  Random random(1);
  for (std::uint32_t first = 0; first < 1024; first += 64) {
    std::vector<std::uint32_t> indices(64);
    for (std::uint32_t i = 0; i < 64; ++i) indices[i] = first + i;
    const Batch batch = buffer.fill(indices, Augmentation::none, random);
    batches.push_back({batch.inputs.clone(), batch.targets.clone()});
  }
  return batches;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What a user of LibTorch writes.
class BareLoop {
 public:
  BareLoop() : optimizer_(net_->parameters(), torch::optim::SGDOptions(0.05)) {}
  void run(int iterations, const std::vector<Batch>& batches) {
    for (int k = 0; k < iterations; ++k) {
      const Batch& batch = batches[next_++ % batches.size()];
      optimizer_.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(net_->forward(batch.inputs), batch.targets);
      loss.backward();
      loss.item<float>();
      optimizer_.step();
    }
  }

 private:
  Net net_;
  torch::optim::SGD optimizer_;
  std::size_t next_ = 0;
};

/// The same under an exchange.
class HearsayLoop {
 public:
  HearsayLoop(const Options& options, const mpi::Environment& environment)
      : model_(Net()), optimizer_(model_.trainable(), torch::optim::SGDOptions(0.05)) {
    Config config = Config::from_text("exchange: {name: " + options.exchange + ", schedule: " + options.schedule + "}");
    if (options.exchange == "eventgrad") config.override_with("trigger.name=" + options.trigger);
    const auto plan = plan_exchange(config);
    Config topology_section = config.section("topology");
    topology_.emplace(TopologyPlan(topology_section).build(environment.ranks()));
    config.throw_if_invalid();
    neighbourhood_ = topology_->neighbourhood(environment.rank());
    const Layout& layout = model_.replica().layout;
    const std::size_t ring = MailboxMap::capacity_for(plan->packet_bound(layout));
    const int degree = static_cast<int>(neighbourhood_.neighbours.size());
    ledger_.emplace(neighbourhood_.neighbours.size(), layout.count());
    window_.emplace(MailboxMap{.degree = degree, .capacity_bytes = ring}.total_bytes());
    mailbox_.emplace(*window_, *topology_, environment.rank(), ring, *ledger_);
    engine_.emplace([this] { return mailbox_->progress(); });
    exchange_ = plan->build({neighbourhood_, model_.replica(), *mailbox_, *engine_, *ledger_, peers_});
  }
  void run(int iterations, const std::vector<Batch>& batches) {
    for (int i = 0; i < iterations; ++i, ++k_) {
      exchange_->start(k_);
      model_.loss_and_gradient(batches[static_cast<std::size_t>(k_) % batches.size()]);
      exchange_->finish(k_);
      optimizer_.step();
      exchange_->stepped(k_);
    }
  }
  CommunicationEngine& engine() { return *engine_; }
  Mailbox& mailbox() { return *mailbox_; }
  const Ledger& ledger() const { return *ledger_; }

 private:
  Model model_;
  torch::optim::SGD optimizer_;
  mpi::Peers peers_{{}};
  std::optional<Topology> topology_;
  Neighbourhood neighbourhood_;
  std::optional<Ledger> ledger_;
  std::optional<mpi::Window> window_;
  std::optional<Mailbox> mailbox_;
  std::optional<ThreadEngine> engine_;
  std::unique_ptr<Exchange> exchange_;
  Iteration k_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void measure(const Options& options, const mpi::Environment& environment) {
  use_threads(1);
  const auto batches = make_batches();
  HearsayLoop* serving = nullptr;
  mpi::Communicator world([&] { serving->mailbox().progress(); });
  HearsayLoop hearsay(options, environment);
  serving = &hearsay;
  BareLoop bare;
  const auto timed = [&](auto&& block) {
    hearsay.engine().run([&] { world.barrier(); });
    const auto start = std::chrono::steady_clock::now();
    block();
    double slowest[1] = {seconds_since(start)};
    hearsay.engine().run([&] { world.maximum(slowest); });
    return slowest[0] / options.iterations;
  };
  std::vector<double> bare_s, hearsay_s, ratios;
  for (int block = -1; block < options.blocks; ++block) {  // block −1 warms up
    const double without = timed([&] { bare.run(options.iterations, batches); });
    const double with = timed([&] { hearsay.run(options.iterations, batches); });
    if (block < 0) continue;
    bare_s.push_back(without), hearsay_s.push_back(with), ratios.push_back(with / without);
  }
  if (environment.rank() != 0) return;
  std::printf("ranks %d  exchange %s  schedule %s  blocks %d x %d iterations\n", environment.ranks(),
              options.exchange.c_str(), options.schedule.c_str(), options.blocks, options.iterations);
  std::printf("bare LibTorch loop  %8.3f ms an iteration (median)\n", 1e3 * median(bare_s));
  std::printf("under Hearsay       %8.3f ms an iteration (median)\n", 1e3 * median(hearsay_s));
  std::printf("ratio               %8.3f (median), %.3f .. %.3f\n", median(ratios),
              *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()));
  const double iterations = options.iterations * (options.blocks + 1);
  for (const Phase phase : {Phase::trigger, Phase::encode, Phase::wait, Phase::mix})
    std::printf("  of it %-8s      %8.3f ms\n", phase_names[static_cast<std::size_t>(phase)],
                1e3 * hearsay.ledger().seconds(phase) / iterations);
}

}  // namespace

int main(int argc, char** argv) {
  setenv("OMP_NUM_THREADS", "1", 0);
  Options options;
  CLI::App app("Time per iteration under Hearsay, as a ratio to the bare LibTorch loop");
  app.add_option("--exchange", options.exchange, "as exchange.name")->capture_default_str();
  app.add_option("--schedule", options.schedule, "as exchange.schedule")->capture_default_str();
  app.add_option("--trigger", options.trigger, "as trigger.name")->capture_default_str();
  app.add_option("--iterations", options.iterations, "iterations a block")->capture_default_str();
  app.add_option("--blocks", options.blocks, "pairs of blocks")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const mpi::Environment environment;
    measure(options, environment);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_overhead: %s\n", error.what());
    mpi::Environment::abort(1);
  }
  return 0;
}
