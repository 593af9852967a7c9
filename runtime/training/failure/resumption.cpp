#include "runtime/training/failure/resumption.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace hearsay {
namespace {

/// A checkpoint's manifests of the ranks r, r + P, … that are there.
std::vector<CheckpointManifest> own_manifests(const CheckpointFolder& folder, std::uint64_t number, int rank,
                                              int ranks) {
  std::vector<CheckpointManifest> found;
  const auto there = folder.numbers();
  if (!std::ranges::binary_search(there, number)) return found;
  int most = folder.complete(number).value_or(0);  // where this rank sees all of it
  if (const auto own = folder.manifest(number, rank)) most = std::max(most, own->ranks);
  for (CheckpointManifest& manifest : folder.manifests(number))
    if (manifest.rank < most && manifest.rank % ranks == rank) found.push_back(std::move(manifest));
  return found;
}

/// Those that are whole, in the order of the manifests.
void read_states(const CheckpointFolder& folder, const std::vector<CheckpointManifest>& manifests, Resumption& part) {
  for (const CheckpointManifest& manifest : manifests) {
    try {
      part.states.push_back(folder.read(manifest));
      part.of.push_back(manifest.rank);
    } catch (const DataError&) {  // damaged: an older one may not be
    }
  }
}

/// Σ over ranks.
void add_up(CommunicationEngine& engine, Communicator& communicator, std::vector<double>& values) {
  engine.run([&] { communicator.sum(values); });
}

template <class Value>
void add(std::vector<double>& sum, std::span<const Value> values) {
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += static_cast<double>(values[i]);
}

/// This checkpoint, if all ranks have of it what they need.
std::optional<Resumption> checkpoint_of_all(CommunicationEngine& engine, Communicator& communicator,
                                            const CheckpointFolder& folder, std::uint64_t number) {
  const int rank = communicator.rank(), ranks = communicator.size();
  const auto manifests = own_manifests(folder, number, rank, ranks);
  // The largest and the smallest number of ranks, whether ranks wrote each for itself, minus the smallest epoch.
  constexpr double nothing = -std::numeric_limits<double>::max();
  std::vector<double> said{nothing, nothing, 0.0, nothing};
  for (const CheckpointManifest& manifest : manifests) {
    said[0] = std::max(said[0], static_cast<double>(manifest.ranks));
    said[1] = std::max(said[1], -static_cast<double>(manifest.ranks));
    said[2] = std::max(said[2], manifest.settled ? 0.0 : 1.0);
    said[3] = std::max(said[3], -manifest.epoch);
  }
  engine.run([&] { communicator.maximum(said); });
  if (said[0] < 1.0 || said[0] != -said[1]) return std::nullopt;  // not there, or two attempts are mixed
  Resumption part{.number = number, .ranks = static_cast<int>(said[0]), .settled = said[2] == 0.0, .epoch = -said[3]};
  read_states(folder, manifests, part);
  const auto P = static_cast<std::size_t>(part.ranks);
  std::vector<double> there(P), lost(P);
  for (const int r : part.of) there[static_cast<std::size_t>(r)] = 1.0;
  for (const int r : folder.lost_since(number))
    if (r < part.ranks && !part.settled) lost[static_cast<std::size_t>(r)] = 1.0;
  engine.run([&] {
    communicator.maximum(there);
    communicator.maximum(lost);
  });
  part.living = static_cast<int>(std::ranges::count(there, 1.0));
  for (std::size_t r = 0; r < P; ++r)
    if (there[r] == 0.0 && lost[r] == 0.0) return std::nullopt;
  return part.living > 0 ? std::optional(std::move(part)) : std::nullopt;
}

}  // namespace

std::optional<Resumption> newest_checkpoint(CommunicationEngine& engine, Communicator& communicator,
                                            const CheckpointFolder& folder) {
  // The numbers that any rank sees, from the newest: those between them are nobody's.
  std::vector<std::uint64_t> left = folder.numbers();
  for (;;) {
    double newest = left.empty() ? 0.0 : static_cast<double>(left.back());
    engine.run([&] { communicator.maximum({&newest, 1}); });
    const auto number = static_cast<std::uint64_t>(newest);
    if (number == 0) return std::nullopt;
    if (auto found = checkpoint_of_all(engine, communicator, folder, number)) return found;
    std::erase(left, number);
  }
}

Resumption find_checkpoint(CommunicationEngine& engine, Communicator& communicator, const CheckpointFolder& folder) {
  if (auto found = newest_checkpoint(engine, communicator, folder)) {
    folder.discard_after(found->number);
    return std::move(*found);
  }
  const std::size_t here = folder.numbers().size();
  throw DataError(folder.directory().string() + ": " +
                  (here == 0
                       ? "there is no checkpoint. A run writes them with train.checkpoint, and one when a signal "
                         "ends it; one that has finished can be begun anew with --overwrite"
                       : "no checkpoint (" + std::to_string(here) +
                             " here) is complete: files are missing or "
                             "damaged, or on a host that the ranks have left; each host must see its ranks' files. "
                             "Begin anew with --overwrite"));
}

void load_part(std::span<const std::byte> state, const char* name, const std::string& file,
               const std::function<void(Archive&)>& load) {
  auto part = Archive::find_part(state, name, file);
  if (!part) throw DataError(file + ": has no part '" + name + "'; it is of another version of Hearsay");
  load(*part);
  if (part->left() > 0) part->refuse(name, "has " + std::to_string(part->left()) + " bytes more than there should be");
}

std::vector<float> load_mean(const Resumption& found, CommunicationEngine& engine, Communicator& communicator,
                             const CheckpointFolder& folder, Model& model) {
  Parameters& replica = model.replica();
  std::vector<double> x(replica.layout.size()), owed(x.size());
  std::vector<torch::Tensor> buffers;
  for (const torch::Tensor& tensor : model.other_state()) {
    const auto type = tensor.is_floating_point() ? torch::kFloat64 : torch::kInt64;
    buffers.push_back(torch::zeros(tensor.sizes(), type));
  }
  for (std::size_t i = 0; i < found.states.size(); ++i) {
    const RawBytes& state = found.states[i];
    const std::string file = folder.state_file(found.number, found.of[i]).string();
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
  for (std::size_t i = 0; i < x.size(); ++i) mean[i] = static_cast<float>(x[i] / found.living);
  replica.device->put(std::as_bytes(std::span(mean)), replica.values.span());
  const torch::NoGradGuard no_gradient;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    torch::Tensor sum = buffers[b].to(torch::kFloat64).contiguous();
    std::vector<double> values(sum.data_ptr<double>(), sum.data_ptr<double>() + sum.numel());
    add_up(engine, communicator, values);
    for (double& value : values) value /= found.living;
    const torch::Tensor average = torch::from_blob(values.data(), sum.sizes(), torch::kFloat64);
    const ComputeSlice slice(*replica.device);
    torch::Tensor(model.other_state()[b]).copy_(average);
  }
  if (std::ranges::all_of(owed, [](double value) { return value == 0.0; })) return {};
  return {owed.begin(), owed.end()};
}

}  // namespace hearsay
