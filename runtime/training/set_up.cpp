#include "runtime/training/set_up.hpp"

#include <dlfcn.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "runtime/data/classes.hpp"
#include "runtime/gpu/cuda.hpp"

namespace hearsay {
namespace {

/// Ranks of a host take its GPUs in turn, and share them if there are fewer.
int gpu_for(int rank_on_host) {
  const auto gpus = static_cast<int>(torch::cuda::device_count());
  if (gpus == 0)
    throw CommunicationError(
        "train.device is cuda, but LibTorch " TORCH_VERSION
        " finds no GPU here: it is built without CUDA, or there is no driver. Build against a LibTorch with CUDA "
        "(CMAKE_PREFIX_PATH), or use train.device: cpu");
  return rank_on_host % gpus;
}

}  // namespace

Model make_model(const RunPlan::Parts& plan, const DataSet& data, std::uint64_t rank) {
  torch::manual_seed(stream_seed(plan.seed, "model"));
  Model model = plan.task.make_model(data.shape);
  model.learn_by_default(objective_for(data, plan.label_smoothing));
  if (!data.vocabulary.empty()) model.keep("vocabulary", data.vocabulary);
  if (plan.mix_buffers) model.include_buffers();
  torch::manual_seed(stream_seed(plan.seed, "dropout", plan.common_dropout ? 0 : rank));
  return model;
}

DataSet load_data(const RunPlan::Parts& plan) {
  DataSet data = plan.task.load_data();
  for (const auto& [examples, which] : {std::pair{data.train, "train"}, {data.test, "test"}})
    if (!examples || examples->size() == 0)
      throw DataError("data '" + data.name + "': there is nothing to " + which + " on");
  require_few_classes(data);
  if (plan.augmentation != Augmentation::none && !data.augmentable)
    throw ConfigError("data.augmentation: shifted and mirrored images of '" + data.name +
                      "' do not keep their class, or are no images; use augmentation: none");
  return data;
}

void move_to_device(Model& model, const std::string& name, int rank_on_host, int threads) {
  if (name != "cpu") {
    const int gpu = gpu_for(rank_on_host);
    model.live_on(cuda_device(gpu), {torch::kCUDA, static_cast<c10::DeviceIndex>(gpu)});
  } else if (model.replica().device->is_processor()) {  // a task may have put its model elsewhere
    model.replica().device = processor(threads);
  }
}

Model make_model(const RunPlan::Parts& plan, const DataSet& data, std::uint64_t rank, int rank_on_host) {
  Model model = make_model(plan, data, rank);
  move_to_device(model, plan.device, rank_on_host, plan.threads);
  return model;
}

Model started_model(const RunPlan::Parts& plan, const DataSet& data, int rank, int rank_on_host) {
  Model model = make_model(plan, data, static_cast<std::uint64_t>(rank));
  if (rank == 0 && !plan.initial_model.empty()) model.load(plan.initial_model);
  move_to_device(model, plan.device, rank_on_host, plan.threads);
  return model;
}

TrainingBatches make_batches(const RunPlan::Parts& plan, const DataSet& data, int ranks, int rank) {
  const auto stream = static_cast<std::uint64_t>(rank);
  Random common(stream_seed(plan.seed, "partition"));
  auto shares = plan.partition->split(data.shares, ranks, common);
  Sampler sampler(std::move(shares[static_cast<std::size_t>(rank)]),
                  RunPlan::samples_per_epoch(data.train->size(), ranks), plan.batch_size, plan.shuffle,
                  stream_seed(plan.seed, "sampler", stream), plan.batches);
  if (plan.budget == RunLength::Budget::job && plan.partition->shares_are_alike()) {
    // Ranks go through their shares at speeds of their own. Dealt anew every epoch, all examples are seen equally often
    // on average, however unlike the speeds are.
    sampler.deal([&plan, &data, ranks, rank](std::uint64_t epoch) {
      Random of_epoch(stream_seed(plan.seed, "partition", epoch));
      auto dealt = plan.partition->split(data.shares, ranks, of_epoch);
      return std::move(dealt[static_cast<std::size_t>(rank)]);
    });
  }
  return {data, std::move(sampler), plan.augmentation != Augmentation::none,
          stream_seed(plan.seed, "augmentation", stream)};
}

std::size_t checkpoint_bytes(const RunPlan::Parts& plan, Model& model, std::size_t neighbours, int ranks) {
  const Layout& layout = model.replica().layout;
  return 2 * layout.size() * sizeof(float) + plan.optimizer->kept_bytes(model) +
         plan.exchange->kept_bytes(layout, neighbours, ranks);
}

void broadcast_other_state(Model& model, Communicator& communicator) {
  const torch::NoGradGuard no_gradient;
  const ComputeSlice slice(*model.replica().device);
  for (const torch::Tensor& tensor : model.other_state()) {
    torch::Tensor copy = tensor.cpu().contiguous();
    communicator.broadcast({static_cast<std::byte*>(copy.data_ptr()), copy.nbytes()}, 0);
    torch::Tensor(tensor).copy_(copy);
  }
}

void use_threads(int threads) {
  at::set_num_threads(threads);
  // Which BLAS there is is decided when the program is loaded, not when it is built.
  if (void* found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(found)(threads);
  }
}

void require_gpu() { static_cast<void>(gpu_for(0)); }

}  // namespace hearsay
