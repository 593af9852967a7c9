#include "apps/bench/training/training.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "apps/models/models.hpp"
#include "base/error.hpp"
#include "base/timing.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/mpi/peers.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/process/threads.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

constexpr double learning_rate = 0.01;
constexpr int classes = 10;

/// Makes the network of a name; the same initial values every time.
class Network {
 public:
  Network(const std::string& name, std::string device, const mpi::Environment& environment)
      : device_(std::move(device)), rank_(environment.rank()), rank_on_host_(environment.rank_on_host()) {
    Config section = Config::from_text("name: " + name);
    factory_ = chosen_entry(models(), section, "resnet20", "what is trained").make(section);
    section.throw_if_invalid();
    images_ = {.channels = 1, .height = 28, .width = 28, .classes = classes, .pixels = {}, .labels = {}};
    try {
      static_cast<void>(factory_->make(images_));
    } catch (const ConfigError&) {  // no network for digits: one for photographs
      images_.channels = 3, images_.height = images_.width = 32;
    }
  }
  Model make() const {
    torch::manual_seed(1);
    Model model = factory_->make(images_);
    move_to_device(model, device_, rank_on_host_, 1);
    return model;
  }
  /// Noise, where the network is.
  std::vector<Batch> batches(int batch_size) const {
    constexpr int count = 8;
    torch::manual_seed(2 + static_cast<std::uint64_t>(rank_));
    const torch::Device where = make().trainable().front().device();
    std::vector<Batch> made;
    for (int b = 0; b < count; ++b)
      made.push_back({torch::randn({batch_size, images_.channels, images_.height, images_.width}).to(where),
                      torch::randint(classes, {batch_size}, torch::kLong).to(where)});
    return made;
  }

 private:
  std::string device_;
  int rank_, rank_on_host_;
  std::unique_ptr<ModelFactory> factory_;
  ImageSet images_;
};

/// What a user of LibTorch writes.
class BareLoop {
 public:
  explicit BareLoop(Model model) : model_(std::move(model)), parameters_(model_.module().parameters()) {
    for (torch::Tensor& parameter : parameters_) {  // out of Hearsay's block, each on its own as LibTorch has them
      parameter.set_data(parameter.detach().clone());
      parameter.mutable_grad().reset();
    }
    optimizer_.emplace(parameters_, torch::optim::SGDOptions(learning_rate));
  }
  void run(int iterations, const std::vector<Batch>& batches) {
    for (int i = 0; i < iterations; ++i) {
      const Batch& batch = batches[next_++ % batches.size()];
      optimizer_->zero_grad();
      auto loss = torch::nn::functional::cross_entropy(model_.forward(batch.inputs), batch.targets);
      loss.backward();
      static_cast<void>(loss.item<float>());
      optimizer_->step();
    }
  }

 private:
  Model model_;
  std::vector<torch::Tensor> parameters_;
  std::optional<torch::optim::SGD> optimizer_;
  std::size_t next_ = 0;
};

Config config_of(const std::string& exchange, const std::vector<std::string>& settings) {
  const auto colon = exchange.find(':');
  std::string text = "exchange: {name: " + exchange.substr(0, colon);
  if (colon != std::string::npos) text += ", schedule: " + exchange.substr(colon + 1);
  Config config = Config::from_text(text + "}");
  for (const std::string& setting : settings) config.override_with(setting);
  return config;
}

/// The same under an exchange. Destroyed in the reverse of the order in which things depend on each other.
class HearsayLoop {
 public:
  HearsayLoop(Config config, Model model, const mpi::Environment& environment)
      : model_(std::move(model)),
        optimizer_(model_.trainable(), torch::optim::SGDOptions(learning_rate)),
        plan_(plan_exchange(config)),
        topology_(graph_of(config, *plan_, environment.ranks())),
        neighbourhood_(topology_.neighbourhood(environment.rank())),
        ledger_(neighbourhood_.neighbours.size(), layout().count()),
        peers_({.idle = [this] { mailbox_->progress(); }, .sent = [](int, const Message&) {}}) {
    const std::size_t ring = MailboxMap::capacity_for(plan_->packet_bound(layout()));
    const int degree = static_cast<int>(neighbourhood_.neighbours.size());
    window_.emplace(MailboxMap{.degree = degree, .capacity_bytes = ring}.total_bytes());
    mailbox_.emplace(*window_, topology_, environment.rank(), ring, ledger_);
    engine_.emplace([this] { return mailbox_->progress(); });
    exchange_ = build_exchange(*plan_, {neighbourhood_, model_.replica(), *mailbox_, *engine_, ledger_, peers_});
    if (exchange_->layer_wise()) model_.on_gradient([this](SegmentId s) { exchange_->gradient_ready(s); });
  }

  void run(int iterations, const std::vector<Batch>& batches) {
    for (int i = 0; i < iterations; ++i, ++k_) {
      exchange_->start(k_);
      {
        const PhaseTimer timer(ledger_, Phase::compute);
        model_.loss_and_gradient(batches[static_cast<std::size_t>(k_) % batches.size()]);
      }
      exchange_->finish(k_);
      {
        const PhaseTimer timer(ledger_, Phase::optimizer);
        const ComputeTurn turn(*model_.replica().device);
        optimizer_.step();
      }
      exchange_->stepped(k_);
    }
  }
  /// Everything posted is sent and seen, so that the window can go.
  void settle(mpi::Communicator& world) {
    engine_->wait_until([this] { return !mailbox_->sending(); });
    engine_->run([&] {
      world.barrier();
      mailbox_->progress();
      world.barrier();
    });
  }
  CommunicationEngine& engine() { return *engine_; }
  Mailbox& mailbox() { return *mailbox_; }
  const Ledger& ledger() const { return ledger_; }

 private:
  const Layout& layout() const { return model_.replica().layout; }
  static Topology graph_of(Config& config, const ExchangePlan& plan, int ranks) {
    const auto graph = plan_topology(config, plan);
    config.throw_if_invalid();
    plan.require_ranks(ranks);
    return graph->build(ranks);
  }

  Model model_;
  torch::optim::SGD optimizer_;
  std::unique_ptr<ExchangePlan> plan_;
  Topology topology_;
  Neighbourhood neighbourhood_;
  Ledger ledger_;
  mpi::Peers peers_;
  std::optional<mpi::Window> window_;
  std::optional<Mailbox> mailbox_;
  std::optional<ThreadEngine> engine_;
  std::unique_ptr<Exchange> exchange_;
  Iteration k_ = 0;
};

using PhaseSeconds = std::array<double, phase_names.size()>;

PhaseSeconds phases_of(const Ledger& ledger) {
  PhaseSeconds seconds{};
  for (std::size_t p = 0; p < seconds.size(); ++p) seconds[p] = ledger.seconds(static_cast<Phase>(p));
  return seconds;
}

/// Blocks without and with Hearsay in turns; each from a common barrier on, its time that of the slowest rank.
TrainingTiming measure_one(const std::string& exchange, const TrainingOptions& options,
                           const mpi::Environment& environment) {
  const Network network(options.model, options.device, environment);
  HearsayLoop* serving = nullptr;
  mpi::Communicator world([&] { serving->mailbox().progress(); });
  HearsayLoop hearsay(config_of(exchange, options.settings), network.make(), environment);
  serving = &hearsay;
  BareLoop bare(network.make());
  const auto batches = network.batches(options.batch_size);
  const auto timed = [&](auto& loop) {
    hearsay.engine().run([&] { world.barrier(); });
    double slowest[1] = {seconds_taken([&] { loop.run(options.iterations, batches); })};
    hearsay.engine().run([&] { world.maximum(slowest); });
    return slowest[0] / options.iterations;
  };
  timed(bare), timed(hearsay);  // warms up
  const PhaseSeconds before = phases_of(hearsay.ledger());
  std::vector<double> bare_s, hearsay_s, ratios;
  for (int block = 0; block < options.blocks; ++block) {
    bare_s.push_back(timed(bare)), hearsay_s.push_back(timed(hearsay));
    ratios.push_back(hearsay_s.back() / bare_s.back());
  }
  PhaseSeconds phase_s = phases_of(hearsay.ledger());
  for (std::size_t p = 0; p < phase_s.size(); ++p)
    phase_s[p] = (phase_s[p] - before[p]) / (options.blocks * options.iterations * environment.ranks());
  hearsay.engine().run([&] { world.sum(phase_s); });
  hearsay.settle(world);
  const auto [lowest, highest] = std::ranges::minmax(ratios);
  return {.exchange = exchange,
          .bare_s = median(std::move(bare_s)),
          .hearsay_s = median(std::move(hearsay_s)),
          .ratio = median(ratios),
          .lowest_ratio = lowest,
          .highest_ratio = highest,
          .phase_s = phase_s};
}

}  // namespace

std::vector<TrainingTiming> measure_training(const TrainingOptions& options, const mpi::Environment& environment,
                                             const std::function<void(const BenchStep&)>& begun) {
  use_threads(1);
  const int count = static_cast<int>(options.exchanges.size());
  std::vector<TrainingTiming> timings;
  for (const std::string& exchange : options.exchanges) {
    begun({.index = static_cast<int>(timings.size()) + 1, .count = count, .what = exchange});
    timings.push_back(measure_one(exchange, options, environment));
  }
  return timings;
}

}  // namespace hearsay
