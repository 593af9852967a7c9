#include "runtime/training/model/model.hpp"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/error.hpp"
#include "base/regular_file.hpp"
#include "runtime/replica/block_state.hpp"
#include "runtime/report/files.hpp"
#include "runtime/training/model/seal.hpp"
#include "runtime/training/model/tensor_state.hpp"
#include "runtime/training/model/writing.hpp"

namespace hearsay {
namespace {

void require_float_on_cpu(const std::string& name, const torch::Tensor& tensor) {
  if (tensor.scalar_type() == torch::kFloat32 && tensor.device().is_cpu()) return;
  throw ConfigError("model: the parameter '" + name + "' is " + std::string(c10::toString(tensor.scalar_type())) +
                    " on " + tensor.device().str() + "; Hearsay trains parameters of type Float on cpu");
}

/// As `torch::nn::Module::save` writes it, from copies in the processor's memory.
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

/// A tensor over memory of the replica, which lives as long as the tensor.
torch::Tensor view(const std::shared_ptr<Parameters>& replica, torch::Device where, std::span<float> values) {
  return torch::from_blob(
      values.data(), {static_cast<std::int64_t>(values.size())}, [replica](void*) {},
      torch::TensorOptions(torch::kFloat32).device(where));
}

/// Moves a tensor's values into this memory and makes the tensor a view of it.
void move_into(const torch::Tensor& memory, torch::Tensor& tensor) {
  const torch::Tensor inside = memory.view(tensor.sizes());
  inside.copy_(tensor);
  tensor.set_data(inside);
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

/// The bytes of a saved model, at most so many.
std::string saved_bytes(const std::filesystem::path& file, std::size_t most) {
  RegularFile saved(file,
                    "name the model.pt of a run, which is there from its end on unless report.save_model is false");
  if (saved.size() > most)
    throw DataError(file.string() + ": has " + std::to_string(saved.size()) + " bytes, at most " +
                    std::to_string(most) + " are read; no model of this kind has as many");
  std::string bytes(saved.size(), '\0');
  saved.read(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace

Model::Model(std::shared_ptr<torch::nn::Module> module, Forward forward, std::optional<Objective> objective)
    : module_(std::move(module)),
      forward_(std::move(forward)),
      own_objective_(objective.has_value()),
      objective_(std::move(objective).value_or(Objective{})) {
  bind(processor());
}

void Model::include_buffers() {
  with_buffers_ = true;
  bind(replica_->device);
}

void Model::live_on(std::shared_ptr<Device> device, torch::Device where) {
  where_ = where;
  bind(device);
  for (torch::Tensor& tensor : other_state_) tensor.set_data(tensor.to(where));
}

/// Makes a new replica, moves the values of the module's tensors into it, and makes these views of it.
void Model::bind(const std::shared_ptr<Device>& device) {
  const torch::NoGradGuard no_gradient;
  Inventory found = take_inventory(*module_, with_buffers_);
  if (found.trainable.empty()) throw ConfigError("model: the module has no parameter that needs a gradient");
  const auto replica = std::make_shared<Parameters>(std::move(found.layout), device);
  const ComputeSlice slice(*device);
  SegmentId s = 0;
  for (torch::Tensor& parameter : found.trainable) {
    const Segment& segment = replica->layout[s++];
    parameter.mutable_grad().reset();  // a gradient lies where its tensor does
    move_into(view(replica, where_, replica->values.segment(segment)), parameter);
    parameter.mutable_grad() = view(replica, where_, replica->gradients.segment(segment)).view(parameter.sizes());
  }
  for (torch::Tensor& buffer : found.mixed_buffers)
    move_into(view(replica, where_, replica->values.segment(replica->layout[s++])), buffer);
  gradient_block_ = view(replica, where_, replica->gradients.span());
  replica_ = replica;
  trainable_ = std::move(found.trainable);
  other_state_ = std::move(found.other);
}

void Model::state(Archive& archive) {
  block_state(archive, "x", *replica_->device, replica_->values.span());
  const ComputeSlice slice(*replica_->device);
  for (const torch::Tensor& tensor : other_state_) tensor_state(archive, "a buffer", tensor);
}

double Model::loss_and_gradient(const Batch& batch) {
  const ComputeSlice slice(*replica_->device);
  gradient_block_.zero_();
  const Batch here = there(batch);
  const torch::Tensor loss = objective_.loss(forward_(here.inputs), here.targets);
  loss.backward();
  return loss.item<double>();
}

// A tensor's own hooks run before its gradient is added to .grad; those of its accumulator run after.
void Model::on_gradient(const std::function<void(SegmentId)>& ready) {
  for (SegmentId s = 0; s < trainable_.size(); ++s) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(trainable_[s]));
    accumulators_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [ready, s, device = replica_->device.get()](const torch::autograd::variable_list& outputs,
                                                    const torch::autograd::variable_list&) {
          device->end_compute();
          ready(s);
          device->begin_compute();
          return outputs;
        }));
  }
}

Score Model::score(const Batch& batch) const {
  const torch::NoGradGuard no_gradient;
  const ComputeSlice slice(*replica_->device);
  const Batch here = there(batch);
  const torch::Tensor output = forward_(here.inputs);
  const bool classes = !batch.targets.is_floating_point();
  const auto targets =
      static_cast<double>(classes ? batch.targets.ge(0).sum().item<std::int64_t>() : batch.targets.numel());
  const auto& loss = objective_.test_loss ? objective_.test_loss : objective_.loss;
  // The mean over none is no number.
  const double mean = targets > 0.0 ? loss(output, here.targets).item<double>() : 0.0;
  Score score{.loss_sum = mean * targets, .targets = targets};
  for (const Measure& measure : objective_.measures) {
    if (measure.writing) {
      score.sums.resize(score.sums.size() + measure.sums(), 0.0);
      judge_writing(*measure.writing, here, std::span(score.sums).last(measure.sums()));
    } else {
      score.sums.push_back(measure.sum ? measure.sum(output, here.targets).item<double>() : score.loss_sum);
    }
  }
  return score;
}

/// A module that is no SequenceWriter is asked for its whole output again and again.
void Model::judge_writing(const Writing& writing, const Batch& batch, std::span<double> sums) const {
  const torch::Tensor source = batch.inputs.narrow(1, 0, batch.inputs.size(1) - batch.targets.size(1));
  auto* const writer = dynamic_cast<SequenceWriter*>(module_.get());
  const auto anew = [&](const torch::Tensor& so_far) {
    return forward_(torch::cat({source, so_far}, 1)).select(1, -1);
  };
  const NextToken next = writer != nullptr ? writer->writer(source) : NextToken(anew);
  const auto written = write_greedily(source, writing, next);
  const torch::Tensor targets = batch.targets.cpu().contiguous();
  for (std::int64_t i = 0; i < targets.size(0); ++i) {
    const std::int64_t* const row = targets[i].data_ptr<std::int64_t>();
    const std::int64_t* const end = std::find_if(
        row, row + targets.size(1), [&](std::int64_t token) { return token < 0 || token == writing.end(); });
    writing.judge(written[static_cast<std::size_t>(i)], {row, end}, sums);
  }
}

// Into memory first: LibTorch's writer ends the process where a file takes no more.
void Model::save(const std::filesystem::path& file, const std::string& run_id) const {
  std::string bytes;
  auto texts = texts_;
  if (!run_id.empty()) texts["run_id"] = run_id;
  try {
    const ComputeSlice slice(*replica_->device);
    if (const auto* const own = dynamic_cast<const OwnFormat*>(module_.get()))
      return write_file(file, own->bytes(texts));
    torch::serialize::OutputArchive archive;
    for (const auto& [name, text] : texts) archive.write(name, c10::IValue(text));
    if (replica_->device->is_processor()) {
      module_->save(archive);
    } else {
      write_from_processor(*module_, archive);
    }
    archive.save_to([&bytes](const void* part, std::size_t size) {
      bytes.append(static_cast<const char*>(part), size);
      return size;
    });
  } catch (const c10::Error& error) {
    throw DataError(file.string() + ": the model cannot be written: " + error.what_without_backtrace());
  }
  seal(bytes);
  write_file(file, bytes);
}

void Model::load(const std::filesystem::path& file) {
  if (dynamic_cast<const OwnFormat*>(module_.get()) != nullptr)
    throw ConfigError(file.string() +
                      ": cannot be loaded here, for this model is a file itself: name it in model.path");
  const auto wrong = [&](const std::string& why) { return DataError(file.string() + ": " + why); };
  std::size_t most = std::size_t{1} << 28;  // of names and texts
  for (const auto& tensors : {module_->parameters(), module_->buffers()})
    for (const torch::Tensor& tensor : tensors) most += 2 * tensor.numel() * tensor.element_size();
  const std::string bytes = saved_bytes(file, most);
  if (!is_sealed(bytes)) throw wrong("is damaged, or no model that Hearsay has saved");
  std::vector<std::vector<std::int64_t>> sizes;
  for (const torch::Tensor& parameter : module_->parameters()) sizes.push_back(parameter.sizes().vec());
  try {
    const torch::NoGradGuard no_gradient;
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size(), torch::kCPU);
    module_->load(archive);
  } catch (const c10::Error& error) {
    throw wrong("is not a model of this kind as Hearsay saves it: " + std::string(error.what_without_backtrace()));
  } catch (const std::exception& error) {  // LibTorch's parsers have errors of their own
    throw wrong("is not a model of this kind as Hearsay saves it: " + std::string(error.what()));
  }
  std::size_t i = 0;
  for (const torch::Tensor& parameter : module_->parameters())
    if (parameter.sizes().vec() != sizes[i++] || parameter.scalar_type() != torch::kFloat32)
      throw wrong("is of a model with other parameters");
  bind(replica_->device);
}

void Model::save_state_dict(const std::filesystem::path& file) const {
  std::vector<char> bytes;
  try {
    const ComputeSlice slice(*replica_->device);
    c10::Dict<std::string, at::Tensor> tensors;
    // A copy each: views of the replica would all be saved with the whole of it.
    const auto add = [&](const auto& items) {
      for (const auto& item : items)
        if (item.value().defined()) tensors.insert(item.key(), item.value().detach().cpu().clone());
    };
    add(module_->named_parameters());
    add(module_->named_buffers());
    bytes = torch::pickle_save(c10::IValue(tensors));
  } catch (const c10::Error& error) {
    throw DataError(file.string() + ": the model cannot be written: " + error.what_without_backtrace());
  }
  write_file(file, {bytes.data(), bytes.size()});
}

}  // namespace hearsay
