#include "runtime/training/model.hpp"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <algorithm>
#include <set>

#include "runtime/base/error.hpp"

namespace hearsay {
namespace {

/// (B, T, C) → (B·T, C); (B, C) stays.
torch::Tensor rows(const torch::Tensor& logits) { return logits.dim() > 2 ? logits.flatten(0, -2) : logits; }

void require_float_on_cpu(const std::string& name, const torch::Tensor& tensor) {
  if (tensor.scalar_type() == torch::kFloat32 && tensor.device().is_cpu()) return;
  throw ConfigError("model: the parameter '" + name + "' is " + std::string(c10::toString(tensor.scalar_type())) +
                    " on " + tensor.device().str() + "; Hearsay trains parameters of type Float on cpu");
}

/// A tensor of this shape over memory of the replica, which lives as long as the tensor.
torch::Tensor view(const std::shared_ptr<Parameters>& replica, std::span<float> values, torch::IntArrayRef shape) {
  return torch::from_blob(
      values.data(), shape, [replica](void*) {}, torch::TensorOptions(torch::kFloat32));
}

/// What of a module goes where, every tensor once, even if two layers share it.
struct Inventory {
  Layout layout;
  std::vector<torch::Tensor> trainable, mixed_buffers, other;
};

Inventory take_inventory(const torch::nn::Module& module, bool with_buffers) {
  Inventory found;
  std::set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& parameter = item.value();
    if (!parameter.defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
    if (!parameter.requires_grad()) {
      found.other.push_back(parameter);
      continue;
    }
    require_float_on_cpu(item.key(), parameter);
    found.layout.append(item.key(), parameter.sizes().vec());
    found.trainable.push_back(parameter);
  }
  for (const auto& item : module.named_buffers()) {
    const torch::Tensor& buffer = item.value();
    if (!buffer.defined() || !seen.insert(buffer.unsafeGetTensorImpl()).second) continue;
    if (with_buffers && buffer.scalar_type() == torch::kFloat32) {
      found.layout.append(item.key(), buffer.sizes().vec());
      found.mixed_buffers.push_back(buffer);
    } else {
      found.other.push_back(buffer);
    }
  }
  return found;
}

/// Moves a tensor's values into a segment and makes the tensor a view of it.
void move_into(const std::shared_ptr<Parameters>& replica, const Segment& segment, torch::Tensor& tensor) {
  const torch::Tensor inside = view(replica, replica->values.segment(segment), tensor.sizes());
  inside.copy_(tensor);
  tensor.set_data(inside);
}

}  // namespace

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets) {
  return torch::cross_entropy_loss(rows(logits), targets.flatten());
}

torch::Tensor count_correct(const torch::Tensor& logits, const torch::Tensor& targets) {
  return rows(logits).argmax(1).eq(targets.flatten()).sum();
}

Model::Model(std::shared_ptr<torch::nn::Module> module, Forward forward, Objective objective)
    : module_(std::move(module)), forward_(std::move(forward)), objective_(std::move(objective)) {
  bind(false);
}

void Model::include_buffers() { bind(true); }

void Model::bind(bool with_buffers) {
  const torch::NoGradGuard no_gradient;
  Inventory found = take_inventory(*module_, with_buffers);
  if (found.trainable.empty()) throw ConfigError("model: the module has no parameter that needs a gradient");
  const auto replica = std::make_shared<Parameters>(std::move(found.layout));
  SegmentId s = 0;
  for (torch::Tensor& parameter : found.trainable) {
    const Segment& segment = replica->layout[s++];
    move_into(replica, segment, parameter);
    parameter.mutable_grad() = view(replica, replica->gradients.segment(segment), parameter.sizes());
  }
  for (torch::Tensor& buffer : found.mixed_buffers) move_into(replica, replica->layout[s++], buffer);
  replica_ = replica;
  trainable_ = std::move(found.trainable);
  other_state_ = std::move(found.other);
}

double Model::loss_and_gradient(const Batch& batch) {
  std::ranges::fill(replica_->gradients.span(), 0.0F);
  const torch::Tensor loss = objective_.loss(forward_(batch.inputs), batch.targets);
  loss.backward();
  return loss.item<double>();
}

// A tensor's own hooks run before its gradient is added to .grad; those behind its accumulator run after.
void Model::on_gradient(const std::function<void(SegmentId)>& ready) {
  for (SegmentId s = 0; s < trainable_.size(); ++s) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(trainable_[s]));
    accumulators_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [ready, s](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
          ready(s);
          return outputs;
        }));
  }
}

Score Model::score(const Batch& batch) const {
  const torch::NoGradGuard no_gradient;
  const torch::Tensor output = forward_(batch.inputs);
  const auto targets = static_cast<double>(batch.targets.numel());
  return {.loss_sum = objective_.loss(output, batch.targets).item<double>() * targets,
          .correct = objective_.correct(output, batch.targets).item<double>(),
          .targets = targets};
}

void Model::save(const std::filesystem::path& file) const {
  try {
    torch::serialize::OutputArchive archive;
    module_->save(archive);
    archive.save_to(file.string());
  } catch (const c10::Error& error) {
    throw DataError(file.string() + ": the model cannot be written: " + error.what_without_backtrace());
  }
}

}  // namespace hearsay
