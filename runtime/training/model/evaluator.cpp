#include "runtime/training/model/evaluator.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/error.hpp"

namespace hearsay {
namespace {

std::span<const float> floats(const torch::Tensor& on_processor) {
  return {on_processor.data_ptr<float>(), static_cast<std::size_t>(on_processor.numel())};
}

/// x ← values.
void load(Model& model, std::span<const float> values) {
  model.replica().device->put(std::as_bytes(values), model.replica().values.span());
}

}  // namespace

/// Remembers everything that a forward pass of another model could change, and puts it back at the end of a scope.
class Evaluator::Untouched {
 public:
  explicit Untouched(Model& model)
      : model_(model),
        values_(fetched(*model.replica().device, model.replica().values.span())),
        modules_(model.module().modules()),
        generator_(at::detail::getDefaultCPUGenerator()) {
    for (const auto& module : modules_) training_.push_back(module->is_training());
    for (const torch::Tensor& tensor : model.other_state()) others_.push_back(tensor.detach().clone());
    const std::lock_guard lock(generator_.mutex());
    generator_state_ = generator_.get_state();
  }
  ~Untouched() {
    const torch::NoGradGuard no_gradient;
    load(model_, values_);
    const ComputeSlice slice(*model_.replica().device);
    for (std::size_t i = 0; i < others_.size(); ++i) torch::Tensor(model_.other_state()[i]).copy_(others_[i]);
    // train() reaches all submodules; parents come before children, so the children's own mode is set last.
    for (std::size_t i = 0; i < modules_.size(); ++i) modules_[i]->train(training_[i]);
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(generator_state_);
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  /// x.
  std::span<const float> values() const { return values_; }

 private:
  Model& model_;
  std::vector<float> values_;
  std::vector<torch::Tensor> others_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<bool> training_;
  torch::Generator generator_;
  torch::Tensor generator_state_;
};

Evaluator::Evaluator(Model& model, TestSet test, Communicator& communicator, CommunicationEngine& engine,
                     Ledger& ledger)
    : model_(model), test_(std::move(test)), communicator_(communicator), engine_(engine), ledger_(ledger) {
  if (test_.size == 0) throw DataError("the test set is empty: there is nothing to evaluate models on");
  std::size_t length = model.replica().layout.size();
  for (const torch::Tensor& tensor : model.other_state()) {
    if (tensor.scalar_type() != torch::kFloat32 || !tensor.is_contiguous()) continue;
    averaged_buffers_.push_back(tensor);
    length += static_cast<std::size_t>(tensor.numel());
  }
  mean_.resize(length);
}

void Evaluator::average() {
  Parameters& replica = model_.replica();
  const std::span<float> x = std::span(mean_).first(replica.layout.size());
  replica.device->fetch(replica.values.span(), std::as_writable_bytes(x));
  replica.device->wait();
  auto end = mean_.begin() + static_cast<std::ptrdiff_t>(x.size());
  for (const torch::Tensor& buffer : averaged_buffers_) {
    const torch::Tensor here = buffer.cpu();
    end = std::ranges::copy(floats(here), end).out;
  }
  engine_.run([&] { communicator_.sum(mean_); });
  const auto ranks = static_cast<float>(communicator_.size());
  for (float& value : mean_) value /= ranks;
}

void Evaluator::load_average() {
  const std::size_t values = model_.replica().layout.size();
  load(model_, std::span(mean_).first(values));
  float* from = mean_.data() + values;
  const torch::NoGradGuard no_gradient;
  const ComputeSlice slice(*model_.replica().device);
  for (torch::Tensor& buffer : averaged_buffers_) {
    buffer.copy_(torch::from_blob(from, buffer.sizes(), torch::kFloat32));
    from += buffer.numel();
  }
}

Score Evaluator::score(std::size_t first, std::size_t last) {
  Score sum;
  sum.sums.resize(model_.objective().sums(), 0.0);  // of no examples, too
  for (; first < last; first += std::min(test_.batch_size, last - first))
    sum += model_.score(test_.batch(first, std::min(test_.batch_size, last - first)));
  return sum;
}

Evaluator::MeanModel Evaluator::mean_model() {
  const PhaseTimer timer(ledger_, Phase::evaluate);
  const Untouched untouched(model_);
  average();
  double squares = 0.0, squares_of_mean = 0.0;
  const std::span<const float> values = untouched.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double mean = mean_[i], difference = static_cast<double>(values[i]) - mean;
    squares += difference * difference;
    squares_of_mean += mean * mean;
  }
  load_average();
  model_.module().eval();
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  const Score mine = score(test_.size * rank / ranks, test_.size * (rank + 1) / ranks);
  sums_ = mine.sums;
  sums_.insert(sums_.end(), {mine.loss_sum, mine.targets, squares});
  engine_.run([&] { communicator_.sum(sums_); });
  const std::size_t count = mine.sums.size();
  const Score all{.loss_sum = sums_[count],
                  .targets = sums_[count + 1],
                  .sums = {sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(count)}};
  return {.metrics = values_of(model_.objective(), all),
          .loss = all.loss_sum / all.targets,
          .consensus_distance = std::sqrt(sums_[count + 2] / static_cast<double>(ranks)),
          .norm = std::sqrt(squares_of_mean)};
}

void Evaluator::require_finite_inputs() const {
  for (std::size_t first = 0; first < test_.size; first += test_.batch_size) {
    const std::size_t count = std::min(test_.batch_size, test_.size - first);
    if (test_.batch(first, count).inputs.isfinite().all().item<bool>()) continue;
    throw DataError("of the test examples " + std::to_string(first) + " to " + std::to_string(first + count - 1) +
                    " inputs are NaN or infinite, so that the loss is, too; mend the data, or the mean and stddev that "
                    "normalise them");
  }
}

Evaluator::Ranks Evaluator::every_rank() {
  const PhaseTimer timer(ledger_, Phase::evaluate);
  const Untouched untouched(model_);
  model_.module().eval();
  Ranks ranks;
  ranks.worst = ranks.mean = values_of(model_.objective(), score(0, test_.size));
  const auto sign = [](const MetricValue& of) { return of.metric.higher_is_better ? 1.0 : -1.0; };
  sums_.clear(), lowest_.clear();
  for (const MetricValue& mine : ranks.mean) {
    sums_.push_back(mine.value);
    lowest_.push_back(sign(mine) * mine.value);
  }
  engine_.run([&] {
    communicator_.sum(sums_);
    communicator_.minimum(lowest_);
  });
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    ranks.mean[i].value = sums_[i] / communicator_.size();
    ranks.worst[i].value = sign(ranks.worst[i]) * lowest_[i];
  }
  return ranks;
}

void Evaluator::save_mean_model(const std::filesystem::path& file, const std::filesystem::path& state_dict,
                                const std::string& run_id) {
  average();
  if (communicator_.rank() != 0) return;
  const Untouched untouched(model_);
  load_average();
  model_.save(file, run_id);
  if (!state_dict.empty()) model_.save_state_dict(state_dict);
}

}  // namespace hearsay
