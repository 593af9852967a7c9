#include "runtime/training/resumption.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hearsay {
namespace {

/// What this rank has of a checkpoint. Nothing, unless all of it is there.
std::optional<Resumption> own_part(const CheckpointFolder& folder, std::uint64_t number, int rank, int ranks) {
  auto first = folder.manifest(number, rank);
  if (!first) first = folder.manifest(number, 0);  // fewer ranks wrote it
  if (!first) return std::nullopt;
  Resumption part{.number = number, .ranks = first->ranks, .epoch = first->epoch};
  try {
    for (int r = rank; r < part.ranks; r += ranks) {
      const auto manifest = folder.manifest(number, r);
      if (!manifest || manifest->ranks != part.ranks) return std::nullopt;
      part.states.push_back(folder.read(*manifest));
    }
  } catch (const DataError&) {  // damaged: an older one may not be
    return std::nullopt;
  }
  return part;
}

bool on_all_ranks(CommunicationEngine& engine, mpi::Communicator& communicator, bool here) {
  double all = here ? 1.0 : 0.0;
  engine.run([&] { communicator.minimum({&all, 1}); });
  return all > 0.0;
}

/// Σ over ranks.
void add_up(CommunicationEngine& engine, mpi::Communicator& communicator, std::vector<double>& values) {
  engine.run([&] { communicator.sum(values); });
}

template <class Value>
void add(std::vector<double>& sum, std::span<const Value> values) {
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += static_cast<double>(values[i]);
}

}  // namespace

std::optional<Resumption> newest_checkpoint(CommunicationEngine& engine, mpi::Communicator& communicator,
                                            const CheckpointFolder& folder) {
  double newest = 0.0;
  if (const auto numbers = folder.numbers(); !numbers.empty()) newest = static_cast<double>(numbers.back());
  engine.run([&] { communicator.maximum({&newest, 1}); });
  for (auto number = static_cast<std::uint64_t>(newest); number > 0; --number) {
    const auto there = folder.numbers();
    const bool any = std::ranges::binary_search(there, number);
    auto part = any ? own_part(folder, number, communicator.rank(), communicator.size()) : std::nullopt;
    if (!on_all_ranks(engine, communicator, part.has_value())) continue;
    std::vector<double> ranks{static_cast<double>(part->ranks), -static_cast<double>(part->ranks)};
    engine.run([&] { communicator.maximum(ranks); });
    if (ranks[0] != -ranks[1]) continue;  // two attempts are mixed
    return part;
  }
  return std::nullopt;
}

Resumption find_checkpoint(CommunicationEngine& engine, mpi::Communicator& communicator,
                           const CheckpointFolder& folder) {
  if (auto found = newest_checkpoint(engine, communicator, folder)) {
    folder.discard_after(found->number);
    return std::move(*found);
  }
  throw DataError(
      "there is no complete checkpoint that all ranks can read; a run writes them with train.checkpoint, and one when "
      "a "
      "signal ends it. All hosts must see the files of the ranks that ran there");
}

void load_part(std::span<const std::byte> state, const char* name, const std::string& file,
               const std::function<void(Archive&)>& load) {
  auto part = Archive::find_part(state, name, file);
  if (!part) throw DataError(file + ": has no part '" + name + "'; it is of another version of Hearsay");
  load(*part);
  if (part->left() > 0) part->refuse(name, "has " + std::to_string(part->left()) + " bytes more than there should be");
}

std::vector<float> load_mean(const Resumption& found, CommunicationEngine& engine, mpi::Communicator& communicator,
                             const CheckpointFolder& folder, Model& model) {
  Parameters& replica = model.replica();
  std::vector<double> x(replica.layout.size()), owed(x.size());
  std::vector<torch::Tensor> buffers;
  for (const torch::Tensor& tensor : model.other_state()) {
    const auto type = tensor.is_floating_point() ? torch::kFloat64 : torch::kInt64;
    buffers.push_back(torch::zeros(tensor.sizes(), type));
  }
  int rank = communicator.rank();
  for (const RawBytes& state : found.states) {
    const std::string file = folder.state_file(found.number, rank).string();
    rank += communicator.size();
    load_part(state, "model", file, [&](Archive& archive) { model.state(archive); });
    add(x, std::span<const float>(fetched(*replica.device, replica.values.span())));
    for (std::size_t b = 0; b < buffers.size(); ++b) buffers[b] += model.other_state()[b].detach().cpu();
    load_part(state, "residual", file, [&](Archive& archive) {
      std::vector<float> residual;
      archive.list("residual", residual, x.size());
      if (!residual.empty() && residual.size() != x.size()) archive.refuse("residual", "is not of all parameters");
      add(owed, std::span<const float>(residual));
    });
  }
  add_up(engine, communicator, x);
  add_up(engine, communicator, owed);
  std::vector<float> mean(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) mean[i] = static_cast<float>(x[i] / found.ranks);
  replica.device->put(std::as_bytes(std::span(mean)), replica.values.span());
  const torch::NoGradGuard no_gradient;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    torch::Tensor sum = buffers[b].to(torch::kFloat64).contiguous();
    std::vector<double> values(sum.data_ptr<double>(), sum.data_ptr<double>() + sum.numel());
    add_up(engine, communicator, values);
    for (double& value : values) value /= found.ranks;
    const torch::Tensor average = torch::from_blob(values.data(), sum.sizes(), torch::kFloat64);
    const ComputeTurn turn(*replica.device);
    torch::Tensor(model.other_state()[b]).copy_(average);
  }
  if (std::ranges::all_of(owed, [](double value) { return value == 0.0; })) return {};
  return {owed.begin(), owed.end()};
}

}  // namespace hearsay
