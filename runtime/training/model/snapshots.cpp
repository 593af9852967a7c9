#include "runtime/training/model/snapshots.hpp"

#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace hearsay {
namespace {

std::filesystem::path file_of(const std::filesystem::path& directory, int rank) {
  char name[40];
  std::snprintf(name, sizeof name, "snapshots.rank%04d.bin", rank);
  return directory / name;
}

}  // namespace

Snapshots::Snapshots(Model& model, const std::filesystem::path& directory, int rank, std::string run_id)
    : model_(model), path_(file_of(directory, rank)), run_id_(std::move(run_id)) {}

Snapshots::~Snapshots() {
  file_.close();
  std::error_code gone;  // what cannot be removed stays in the run folder
  if (!kept_) std::filesystem::remove(path_, gone);
}

void Snapshots::remove_file(const std::filesystem::path& directory, int rank) {
  std::error_code gone;
  std::filesystem::remove(file_of(directory, rank), gone);
}

/// Where snapshot i begins.
std::streamoff Snapshots::offset(std::size_t i) const {
  std::size_t bytes = model_.replica().layout.size() * sizeof(float);
  for (const torch::Tensor& tensor : model_.other_state()) bytes += tensor.nbytes();
  return static_cast<std::streamoff>(run_id_.size() + i * bytes);
}

void Snapshots::leave(const Taken& taken) {
  if (taken_.empty()) make_file();
  const std::vector<float> x = fetched(*model_.replica().device, model_.replica().values.span());
  file_.seekp(offset(taken_.size()));
  file_.write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  const ComputeSlice slice(*model_.replica().device);
  for (const torch::Tensor& tensor : model_.other_state()) {
    const torch::Tensor here = tensor.detach().cpu().contiguous();
    file_.write(static_cast<const char*>(here.data_ptr()), static_cast<std::streamsize>(here.nbytes()));
  }
  file_.flush();
  if (!file_)
    throw DataError("cannot write " + path_.string() +
                    ", which keeps models until they are evaluated: is the disk full? train.evaluate_every_epochs: 0 "
                    "does without");
  taken_.push_back(taken);
}

void Snapshots::state(Archive& archive) {
  constexpr std::size_t most = std::size_t{1} << 24;
  std::vector<double> when, done;
  for (const Taken& taken : taken_) {
    done.push_back(taken.job_iterations);
    when.push_back(taken.time_s);
  }
  archive.list("snapshots, iterations", done, most);
  archive.list("snapshots, seconds", when, most);
  kept_ = true;
  if (!archive.loads()) return;
  if (when.size() != done.size()) archive.refuse("snapshots, seconds", "are not as many as their iterations");
  for (std::size_t i = 0; i < done.size(); ++i) taken_.push_back({.job_iterations = done[i], .time_s = when[i]});
  if (taken_.empty()) return;
  std::error_code error;
  const bool plain = std::filesystem::symlink_status(path_, error).type() == std::filesystem::file_type::regular;
  const auto size = std::filesystem::file_size(path_, error);
  if (plain && !error && size >= static_cast<std::uintmax_t>(offset(taken_.size())))
    file_.open(path_, std::ios::in | std::ios::out | std::ios::binary);
  if (file_.is_open()) return;
  lost_ = taken_.size();
  make_file();
}

void Snapshots::make_file() {
  std::error_code unknown;
  const auto there = std::filesystem::symlink_status(path_, unknown).type();
  if (there != std::filesystem::file_type::regular && there != std::filesystem::file_type::not_found)
    throw DataError(path_.string() + ": is no plain file, and models would be kept there; move it away");
  file_.open(path_, std::ios::in | std::ios::out | std::ios::binary | std::ios::trunc);
  file_ << run_id_;
}

void Snapshots::load(std::size_t i) {
  std::vector<float> x(model_.replica().layout.size());
  file_.seekg(offset(i));
  file_.read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  model_.replica().device->put(std::as_bytes(std::span(x)), model_.replica().values.span());
  const torch::NoGradGuard no_gradient;
  const ComputeSlice slice(*model_.replica().device);
  for (const torch::Tensor& tensor : model_.other_state()) {
    torch::Tensor here = torch::empty_like(tensor, torch::kCPU).contiguous();
    file_.read(static_cast<char*>(here.data_ptr()), static_cast<std::streamsize>(here.nbytes()));
    torch::Tensor(tensor).copy_(here);
  }
  if (!file_) throw DataError("cannot read " + path_.string() + ": somebody has changed it while the run went on");
}

}  // namespace hearsay
