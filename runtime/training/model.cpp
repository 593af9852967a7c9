#include "runtime/training/model.hpp"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <algorithm>
#include <set>
#include <stdexcept>

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

/// As `torch::nn::Module::save` writes it, from tensors in the processor's memory.
void write_from_processor(const torch::nn::Module& module, torch::serialize::OutputArchive& archive) {
  for (const auto& item : module.named_parameters(false)) archive.write(item.key(), item.value().cpu());
  for (const auto& item : module.named_buffers(false)) archive.write(item.key(), item.value().cpu(), true);
  for (const auto& child : module.named_children()) {
    if (!child.value()->is_serializable()) continue;
    torch::serialize::OutputArchive part(archive.compilation_unit());
    write_from_processor(*child.value(), part);
    archive.write(child.key(), part);
  }
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

void Model::include_buffers() {
  if (device_copy_) throw std::logic_error("include_buffers: the module computes on a device already");
  bind(true);
}

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
  trainable_ = computed_ = std::move(found.trainable);
  mixed_buffers_ = std::move(found.mixed_buffers);
  other_state_ = std::move(found.other);
}

/// The optimizer keeps tensors in the replica; the module's own go to the device.
void Model::compute_on(torch::Device device) {
  const torch::NoGradGuard no_gradient;
  device_copy_ = std::make_unique<DeviceCopy>(replica_, device);
  device_copy_->upload();
  SegmentId s = 0;
  for (torch::Tensor& parameter : trainable_) {
    torch::Tensor inside = parameter.detach();
    inside.requires_grad_(true).mutable_grad() = parameter.grad();
    move(computed_[s], s);
    computed_[s].mutable_grad() = device_copy_->gradients(replica_->layout[s]).view(inside.sizes());
    parameter = inside;
    ++s;
  }
  for (torch::Tensor& buffer : mixed_buffers_) move(buffer, s++);
  for (torch::Tensor& tensor : other_state_) tensor.set_data(tensor.to(device));
}

/// Makes one of the module's tensors a view of the copy on the device.
void Model::move(torch::Tensor& tensor, SegmentId s) {
  tensor.mutable_grad().reset();  // a gradient lies where its tensor does
  tensor.set_data(device_copy_->values(replica_->layout[s]).view(tensor.sizes()));
}

/// The batch where the module computes, after x has come there.
Batch Model::prepared(const Batch& batch) const {
  if (!device_copy_) return batch;
  const torch::NoGradGuard no_gradient;
  device_copy_->upload();
  return {batch.inputs.to(device_copy_->device()), batch.targets.to(device_copy_->device())};
}

/// A forward pass may have changed buffers that are mixed.
void Model::fetch_buffers() const {
  device_copy_->download_values(replica_->layout.segments().subspan(trainable_.size()));
}

double Model::loss_and_gradient(const Batch& batch) {
  std::ranges::fill(replica_->gradients.span(), 0.0F);
  const Batch here = prepared(batch);
  const torch::Tensor loss = objective_.loss(forward_(here.inputs), here.targets);
  loss.backward();
  if (device_copy_) {
    if (accumulators_.empty()) device_copy_->download_gradients();
    fetch_buffers();
  }
  return loss.item<double>();
}

// A tensor's own hooks run before its gradient is added to .grad; those behind its accumulator run after.
void Model::on_gradient(const std::function<void(SegmentId)>& ready) {
  for (SegmentId s = 0; s < computed_.size(); ++s) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(computed_[s]));
    accumulators_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [ready, s, copy = device_copy_.get(), replica = replica_.get()](const torch::autograd::variable_list& outputs,
                                                                        const torch::autograd::variable_list&) {
          if (copy != nullptr) copy->download_gradient(replica->layout[s]);
          ready(s);
          return outputs;
        }));
  }
}

Score Model::score(const Batch& batch) const {
  const torch::NoGradGuard no_gradient;
  const Batch here = prepared(batch);
  const torch::Tensor output = forward_(here.inputs);
  if (device_copy_) fetch_buffers();
  const auto targets = static_cast<double>(batch.targets.numel());
  return {.loss_sum = objective_.loss(output, here.targets).item<double>() * targets,
          .correct = objective_.correct(output, here.targets).item<double>(),
          .targets = targets};
}

void Model::save(const std::filesystem::path& file) const {
  try {
    torch::serialize::OutputArchive archive;
    if (device_copy_) {
      device_copy_->upload();
      write_from_processor(*module_, archive);
    } else {
      module_->save(archive);
    }
    archive.save_to(file.string());
  } catch (const c10::Error& error) {
    throw DataError(file.string() + ": the model cannot be written: " + error.what_without_backtrace());
  }
}

}  // namespace hearsay
