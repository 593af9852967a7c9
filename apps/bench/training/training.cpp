#include "apps/bench/training/training.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "apps/models/models.hpp"
#include "base/error.hpp"
#include "base/timing.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

constexpr double learning_rate = 0.01;
constexpr int classes = 10;

/// Makes the network of a name; the same initial values every time.
class Network {
 public:
  Network(const std::string& name, std::string device, const Job& job)
      : device_(std::move(device)), rank_(job.rank()), rank_on_host_(job.rank_on_host()) {
    Config section = Config::from_text("name: " + name);
    factory_ = chosen_entry(models(), section, "resnet20", "what is trained").make(section);
    section.document().throw_if_invalid();
    for (const ExampleShape& shape : {digits(), photographs(), text()}) {  // the first that it takes, else the last
      shape_ = shape;
      try {
        static_cast<void>(factory_->make(shape_));
        break;
      } catch (const ConfigError&) {
      }
    }
  }
  Model make() const {
    torch::manual_seed(1);
    Model model = factory_->make(shape_);
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
      made.push_back({noise(batch_size, shape_.inputs).to(where), noise(batch_size, shape_.targets).to(where)});
    return made;
  }

 private:
  static ExampleShape images(std::int64_t channels, std::int64_t side) {
    return {.inputs = {.sizes = {channels, side, side}},
            .targets = {.element = TensorShape::Element::classes, .classes = classes}};
  }
  static ExampleShape digits() { return images(1, 28); }
  static ExampleShape photographs() { return images(3, 32); }
  static ExampleShape text() {
    const TensorShape tokens{.element = TensorShape::Element::classes, .sizes = {64}, .classes = 65};
    return {.inputs = tokens, .targets = tokens};
  }
  static torch::Tensor noise(std::int64_t batch_size, const TensorShape& shape) {
    std::vector<std::int64_t> sizes{batch_size};
    sizes.insert(sizes.end(), shape.sizes.begin(), shape.sizes.end());
    return shape.element == TensorShape::Element::numbers ? torch::randn(sizes)
                                                          : torch::randint(shape.classes, sizes, torch::kLong);
  }

  std::string device_;
  int rank_, rank_on_host_;
  std::unique_ptr<ModelFactory> factory_;
  ExampleShape shape_;
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
      auto loss = cross_entropy(model_.forward(batch.inputs), batch.targets);
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
  for (const std::string& setting : settings) config.document().override_with(setting);
  return config;
}

/// The same under an exchange.
class HearsayLoop {
 public:
  HearsayLoop(Config config, Model model, const Job& job)
      : model_(std::move(model)),
        optimizer_(model_.trainable(), torch::optim::SGDOptions(learning_rate)),
        plan_(std::move(config)),
        member_(job.transport(), plan_.topology(job.ranks()), plan_.exchange(), model_.replica(),
                {.step = {.learning_rate = learning_rate}}) {
    if (member_.exchange().capabilities().layer_wise)
      model_.on_gradient([this](SegmentId s) { member_.gradient_ready(s); });
  }

  void run(int iterations, const std::vector<Batch>& batches) {
    for (int i = 0; i < iterations; ++i, ++k_) {
      member_.start(k_);
      {
        const PhaseTimer timer(member_.ledger(), Phase::compute);
        model_.loss_and_gradient(batches[static_cast<std::size_t>(k_) % batches.size()]);
      }
      member_.learning_rate(learning_rate);
      member_.finish(k_);
      {
        const PhaseTimer timer(member_.ledger(), Phase::optimizer);
        const ComputeSlice slice(*model_.replica().device);
        optimizer_.step();
      }
      member_.stepped(k_);
    }
  }
  Participant& member() { return member_; }

 private:
  Model model_;
  torch::optim::SGD optimizer_;
  ParticipantPlan plan_;
  Participant member_;
  Iteration k_ = 0;
};

using PhaseSeconds = std::array<double, phase_names.size()>;

PhaseSeconds phases_of(const Ledger& ledger) {
  PhaseSeconds seconds{};
  for (std::size_t p = 0; p < seconds.size(); ++p) seconds[p] = ledger.seconds(static_cast<Phase>(p));
  return seconds;
}

/// Blocks without and with Hearsay in turns; each from a common barrier on, its time that of the slowest rank.
TrainingTiming measure_one(const std::string& exchange, const TrainingOptions& options, const Job& job) {
  const Network network(options.model, options.device, job);
  Participant* serving = nullptr;
  mpi::Communicator world([&] { serving->communication().progress(); });
  HearsayLoop hearsay(config_of(exchange, options.settings), network.make(), job);
  serving = &hearsay.member();
  BareLoop bare(network.make());
  const auto batches = network.batches(options.batch_size);
  const auto timed = [&](auto& loop) {
    serving->communication().run([&] { world.barrier(); });
    double slowest[1] = {seconds_taken([&] { loop.run(options.iterations, batches); })};
    serving->communication().run([&] { world.maximum(slowest); });
    return slowest[0] / options.iterations;
  };
  timed(bare), timed(hearsay);  // warms up
  const PhaseSeconds before = phases_of(serving->ledger());
  std::vector<double> bare_s, hearsay_s, ratios;
  for (int block = 0; block < options.blocks; ++block) {
    bare_s.push_back(timed(bare)), hearsay_s.push_back(timed(hearsay));
    ratios.push_back(hearsay_s.back() / bare_s.back());
  }
  PhaseSeconds phase_s = phases_of(serving->ledger());
  for (std::size_t p = 0; p < phase_s.size(); ++p)
    phase_s[p] = (phase_s[p] - before[p]) / (options.blocks * options.iterations * job.ranks());
  serving->communication().run([&] { world.sum(phase_s); });
  serving->settle();
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

std::vector<TrainingTiming> measure_training(const TrainingOptions& options, const Job& job,
                                             const std::function<void(const BenchStep&)>& begun) {
  use_threads(1);
  const int count = static_cast<int>(options.exchanges.size());
  std::vector<TrainingTiming> timings;
  for (const std::string& exchange : options.exchanges) {
    begun({.index = static_cast<int>(timings.size()) + 1, .count = count, .what = exchange});
    timings.push_back(measure_one(exchange, options, job));
  }
  return timings;
}

}  // namespace hearsay
