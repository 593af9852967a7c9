#include "runtime/report/checkpoint.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/ids.hpp"
#include "base/regular_file.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "checkpoint-", rank_prefix = "rank";
constexpr std::string_view state_ending = ".state", manifest_ending = ".json";
constexpr std::size_t most_manifest_bytes = 1 << 16;

std::string rank_name(int rank, std::string_view ending) {
  char name[32];
  std::snprintf(name, sizeof name, "rank%04d", rank);
  return name + std::string(ending);
}

std::vector<fs::path> entries(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// Whose file of a checkpoint it is, also one that was not finished.
std::optional<std::uint64_t> rank_of(std::string_view name) {
  if (const std::size_t unfinished = name.find(".hearsay-");
      unfinished != std::string_view::npos && name.ends_with(".tmp"))
    name = name.substr(0, unfinished);
  const auto rank = number_in_name(name, rank_prefix, state_ending);
  return rank ? rank : number_in_name(name, rank_prefix, manifest_ending);
}

bool is_checkpoint_file(const fs::path& file) {
  return rank_of(file.filename().string()).has_value() && !is_own_folder(file);
}

}  // namespace

CheckpointOptions read_checkpoint_options(Config& checkpoint) {
  CheckpointOptions options;
  options.every_s = checkpoint.real("every_s", 0.0, Range::at_least(0.0),
                                    "seconds of training between two checkpoints; 0: not by time. Where both are 0, "
                                    "one is written when a signal ends the run, and none else");
  options.every_iterations =
      checkpoint.integer("every_iterations", 0, Range::at_least(0),
                         "iterations between two checkpoints, asynchronously of all ranks; 0: not by iterations");
  checkpoint.require(options.every_s == 0.0 || options.every_iterations == 0, "every_s",
                     "either by time or by iterations: leave one of every_s and every_iterations at 0");
  options.keep = static_cast<std::size_t>(
      checkpoint.integer("keep", 2, Range::between(1, 1e6), "newest complete checkpoints that stay on the disk"));
  options.directory = checkpoint.text("directory", "",
                                      "where they are written, in a folder of the run's own, which every host may have "
                                      "for itself; empty: `checkpoints` in the run folder");
  return options;
}

fs::path checkpoint_directory(const CheckpointOptions& options, const fs::path& run_folder, const std::string& run_id) {
  return options.directory.empty() ? run_folder / "checkpoints" : options.directory / run_id;
}

fs::path CheckpointFolder::folder(std::uint64_t number) const {
  char name[40];
  std::snprintf(name, sizeof name, "checkpoint-%06llu", static_cast<unsigned long long>(number));
  return directory_ / name;
}

fs::path CheckpointFolder::state_file(std::uint64_t number, int rank) const {
  return folder(number) / rank_name(rank, state_ending);
}

void CheckpointFolder::write(CheckpointManifest manifest, std::span<const std::byte> state, bool durable) const {
  const fs::path of_number = folder(manifest.number);
  for (int attempt = 0;; ++attempt) {
    constexpr int most_attempts = 10;
    std::error_code error;
    try {
      return write_files(of_number, manifest, state, durable);
    } catch (const DataError&) {
      // Another rank that had no room may have removed the folder while it was empty.
      const bool was_there = fs::exists(fs::symlink_status(of_number, error));
      if (is_own_folder(directory_) && is_own_folder(of_number)) {
        fs::remove(state_file(manifest.number, manifest.rank), error);
        fs::remove(of_number, error);  // where they are empty
      }
      if (is_own_folder(directory_)) fs::remove(directory_, error);
      if (was_there || attempt == most_attempts) throw;
    }
  }
}

void CheckpointFolder::write_files(const fs::path& of_number, CheckpointManifest manifest,
                                   std::span<const std::byte> state, bool durable) const {
  std::error_code error;
  fs::create_directories(of_number, error);
  if (error) throw DataError(of_number.string() + ": cannot be made (" + error.message() + ")");
  for (const fs::path& made : {directory_, of_number})
    if (fs::is_symlink(fs::symlink_status(made, error)))
      throw DataError(made.string() + ": is a link, and checkpoints stay in their folder; remove the link");
  const std::string first_line = heading();
  manifest.bytes = state.size();
  manifest.hash = xxh3(state);
  const Json json{{"run_id", run_id_},
                  {"checkpoint", manifest.number},
                  {"iteration", manifest.iteration},
                  {"epoch", manifest.epoch},
                  {"rank", manifest.rank},
                  {"ranks", manifest.ranks},
                  {"settled", manifest.settled},
                  {"lost", manifest.lost},
                  {"bytes", manifest.bytes},
                  {"hash", hexadecimal(manifest.hash)}};
  write_file(state_file(manifest.number, manifest.rank),
             {first_line, {reinterpret_cast<const char*>(state.data()), state.size()}}, durable);
  const std::string text = json.dump() + "\n";
  write_file(of_number / rank_name(manifest.rank, manifest_ending), {text}, durable);
}

std::vector<std::uint64_t> CheckpointFolder::numbers() const {
  std::vector<std::uint64_t> all;
  if (!is_own_folder(directory_)) return all;  // a link is not followed
  for (const fs::path& path : entries(directory_))
    if (const auto number = number_in_name(path.filename().string(), folder_prefix, ""); number && is_own_folder(path))
      all.push_back(*number);
  std::ranges::sort(all);
  return all;
}

std::optional<CheckpointManifest> CheckpointFolder::manifest(std::uint64_t number, int rank) const {
  try {
    const Json json = Json::parse(file_text(folder(number) / rank_name(rank, manifest_ending), most_manifest_bytes));
    if (json.at("run_id").get<std::string>() != run_id_) return std::nullopt;
    CheckpointManifest said{.number = json.at("checkpoint").get<std::uint64_t>(),
                            .iteration = json.at("iteration").get<Iteration>(),
                            .epoch = json.at("epoch").get<double>(),
                            .rank = json.at("rank").get<int>(),
                            .ranks = json.at("ranks").get<int>(),
                            .settled = json.value("settled", true),
                            .lost = json.value("lost", std::vector<int>{}),
                            .bytes = json.at("bytes").get<std::uint64_t>(),
                            .hash = std::stoull(json.at("hash").get<std::string>(), nullptr, 16)};
    const bool fits = said.number == number && said.rank == rank && said.ranks > rank && said.ranks <= most_ranks &&
                      said.iteration >= 0 && said.epoch >= 0.0 && std::ranges::is_sorted(said.lost) &&
                      (said.lost.empty() || (said.lost.front() >= 0 && said.lost.back() < said.ranks));
    std::error_code error;
    const auto size = fs::file_size(state_file(number, rank), error);
    if (!fits || error || size != said.bytes + heading().size()) return std::nullopt;
    return said;
  } catch (const DataError&) {
  } catch (const std::exception&) {  // of the JSON library, or of a number
  }
  return std::nullopt;
}

std::vector<CheckpointManifest> CheckpointFolder::manifests(std::uint64_t number) const {
  std::vector<CheckpointManifest> all;
  for (const fs::path& file : entries(folder(number))) {
    const auto rank = number_in_name(file.filename().string(), rank_prefix, manifest_ending);
    if (!rank || *rank >= static_cast<std::uint64_t>(most_ranks)) continue;
    if (auto said = manifest(number, static_cast<int>(*rank))) all.push_back(std::move(*said));
  }
  return all;
}

std::vector<int> CheckpointFolder::lost_since(std::uint64_t number) const {
  std::vector<int> lost;
  for (const std::uint64_t other : numbers()) {
    if (other < number) continue;
    for (const CheckpointManifest& said : manifests(other)) lost.insert(lost.end(), said.lost.begin(), said.lost.end());
  }
  std::ranges::sort(lost);
  lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
  return lost;
}

std::optional<int> CheckpointFolder::complete(std::uint64_t number) const {
  const auto there = manifests(number);
  if (there.empty()) return std::nullopt;
  const int ranks = there.front().ranks;
  const bool settled = there.front().settled;
  for (const CheckpointManifest& said : there)
    if (said.ranks != ranks || said.settled != settled) return std::nullopt;
  if (there.size() == static_cast<std::size_t>(ranks)) return ranks;
  if (settled) return std::nullopt;
  const auto lost = lost_since(number);
  for (int r = 0; r < ranks; ++r)
    if (std::ranges::find(there, r, &CheckpointManifest::rank) == there.end() && !std::ranges::binary_search(lost, r))
      return std::nullopt;
  return ranks;
}

RawBytes CheckpointFolder::read(const CheckpointManifest& manifest) const {
  const fs::path file = state_file(manifest.number, manifest.rank);
  const auto damaged = [&](const std::string& why) {
    return DataError(file.string() + ": " + why + "; it is damaged");
  };
  RegularFile in(file);
  const std::string expected = heading();
  std::string first_line(expected.size(), ' ');
  if (in.size() != expected.size() + manifest.bytes) throw damaged("is not as long as its manifest says");
  in.read(std::as_writable_bytes(std::span(first_line)));
  if (first_line != expected) throw damaged("is of another run");
  RawBytes state(manifest.bytes);
  in.read(state);
  if (xxh3(state) != manifest.hash) throw damaged("does not have the hash that its manifest says");
  return state;
}

void CheckpointFolder::prune(int rank, std::size_t keep, std::span<const int> lost) const {
  std::size_t complete_ones = 0, own = 0;
  const std::vector<std::uint64_t> all = numbers();
  // A rank that others see and whose disk is full must not cost them what is complete.
  const bool alone = std::ranges::none_of(all, [&](std::uint64_t number) {
    return std::ranges::any_of(entries(folder(number)), [&](const fs::path& file) {
      const auto other = number_in_name(file.filename().string(), rank_prefix, manifest_ending);
      return other && *other != static_cast<std::uint64_t>(rank);
    });
  });
  for (auto number = all.rbegin(); number != all.rend(); ++number) {
    const bool superfluous = complete_ones >= keep || (alone && own >= keep + 2);
    if (manifest(*number, rank)) ++own;
    if (complete(*number)) ++complete_ones;
    if (!superfluous) continue;
    std::error_code gone;
    for (const fs::path& file : entries(folder(*number))) {  // the manifest first: what is left is not complete
      const auto whose = rank_of(file.filename().string());
      const auto is_whose = [&](int r) { return whose == static_cast<std::uint64_t>(r); };
      if (is_checkpoint_file(file) && (is_whose(rank) || std::ranges::any_of(lost, is_whose))) fs::remove(file, gone);
    }
    fs::remove(folder(*number), gone);  // the last rank's
  }
}

void CheckpointFolder::discard_after(std::uint64_t number) const {
  for (const std::uint64_t other : numbers()) {
    if (other <= number) continue;
    std::error_code gone;
    for (const fs::path& file : entries(folder(other)))
      if (is_checkpoint_file(file)) fs::remove(file, gone);
    fs::remove(folder(other), gone);
  }
}

std::vector<fs::path> find_checkpoint_files(const fs::path& directory) {
  std::vector<fs::path> files;
  if (!is_own_folder(directory)) return files;  // a link is not followed
  for (const fs::path& folder : entries(directory)) {
    if (!number_in_name(folder.filename().string(), folder_prefix, "") || !is_own_folder(folder)) continue;
    for (const fs::path& file : entries(folder))
      if (is_checkpoint_file(file)) files.push_back(file);
  }
  return files;
}

void remove_checkpoint_folders(const fs::path& directory) {
  std::error_code ignored;  // a folder with other people's files stays
  if (!is_own_folder(directory)) return;
  for (const fs::path& folder : entries(directory))
    if (number_in_name(folder.filename().string(), folder_prefix, "") && is_own_folder(folder))
      fs::remove(folder, ignored);
  fs::remove(directory, ignored);
}

RawBytes& CheckpointWriter::buffer() {
  wait();
  buffer_.clear();
  return buffer_;
}

void CheckpointWriter::write(const CheckpointManifest& manifest, bool durable) {
  wait();
  writing_ = std::async(std::launch::async, [this, manifest, durable]() -> std::string {
    try {
      folder_.write(manifest, buffer_, durable);
      folder_.prune(manifest.rank, keep_, manifest.lost);
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  });
}

void CheckpointWriter::wait() {
  if (!writing_.valid()) return;
  if (std::string problem = writing_.get(); !problem.empty()) problems_.push_back(std::move(problem));
}

std::vector<std::string> CheckpointWriter::problems() {
  const bool done = writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (done) wait();
  return std::exchange(problems_, {});
}

}  // namespace hearsay
