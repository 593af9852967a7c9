#pragma once
// Checkpoints on the disk: every rank writes its own files, and nobody waits for anybody.
//
//   DIRECTORY/checkpoint-000007/rank0003.state    what the rank was (base/state/archive.hpp), behind a line of text
//   DIRECTORY/checkpoint-000007/rank0003.json     its manifest, written last: iteration, ranks, length, hash
//
// Each file is written under another name, brought to the disk (fsync) and then renamed. A checkpoint is complete when
// the manifests of all its ranks are there and agree; whatever kills a job at whatever moment, what is complete stays
// so until a newer one is. Where ranks die and the others go on, each writes for itself, without having met: nothing is
// expected then of a rank that another's manifest, of this checkpoint or of a later one, holds for dead.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config/config.hpp"
#include "base/ids.hpp"
#include "base/raw_bytes.hpp"

namespace hearsay {

/// The section `train.checkpoint`.
struct CheckpointOptions {
  double every_s = 0.0;               ///< 0: not by time
  Iteration every_iterations = 0;     ///< 0: not by iterations
  std::size_t keep = 2;               ///< complete ones
  std::filesystem::path directory{};  ///< empty: `checkpoints` in the run folder

  bool periodic() const { return every_s > 0.0 || every_iterations > 0; }
};
CheckpointOptions read_checkpoint_options(Config& checkpoint);

/// Where a run's checkpoints are: one that is given belongs to many runs.
std::filesystem::path checkpoint_directory(const CheckpointOptions& options, const std::filesystem::path& run_folder,
                                           const std::string& run_id);

/// What a rank's manifest says.
struct CheckpointManifest {
  std::uint64_t number = 0;  ///< 1, 2, … in a run, whoever resumes it
  Iteration iteration = 0;   ///< that this rank would have begun next
  double epoch = 0.0;        ///< that the job has done
  int rank = 0, ranks = 1;
  /// All ranks had met: what they remember of each other fits. Else each wrote when it was due, for itself.
  bool settled = true;
  std::vector<int> lost{};            ///< ranks that were dead, ascending: nothing is to be expected of them
  std::uint64_t bytes = 0, hash = 0;  ///< of the state, without the line before it
};

/// A rank's files in a folder of checkpoints.
class CheckpointFolder {
 public:
  CheckpointFolder(std::filesystem::path directory, std::string run_id)
      : directory_(std::move(directory)), run_id_(std::move(run_id)) {}

  const std::filesystem::path& directory() const { return directory_; }

  /// Writes a rank's state and then its manifest, of which `bytes` and `hash` are filled in. Throws DataError; nothing
  /// is left behind then, nor an empty folder.
  /// `durable`: a machine that stops has it, too, and not only a process that is killed; the disk takes its time.
  void write(CheckpointManifest manifest, std::span<const std::byte> state, bool durable = true) const;
  /// Removes this rank's files, and those of ranks that are `lost`, of those that are older than the `keep` newest
  /// complete ones. Where a rank cannot see other ranks' files: than its own `keep` + 2 newest.
  void prune(int rank, std::size_t keep, std::span<const int> lost = {}) const;
  /// Removes the files of all that are newer, whoever has written them: the run goes on before them.
  void discard_after(std::uint64_t number) const;

  /// Their numbers, ascending. None where there is no such folder.
  std::vector<std::uint64_t> numbers() const;
  /// This run's that are there, by rank.
  std::vector<CheckpointManifest> manifests(std::uint64_t number) const;
  /// This run's; nothing where it is not there, not whole, or of another run.
  std::optional<CheckpointManifest> manifest(std::uint64_t number, int rank) const;
  /// Ranks that were dead by the word of a manifest of this checkpoint or of a later one, ascending.
  std::vector<int> lost_since(std::uint64_t number) const;
  /// How many ranks the checkpoint has, if the manifests of all of them that lived are here and agree.
  std::optional<int> complete(std::uint64_t number) const;
  std::filesystem::path state_file(std::uint64_t number, int rank) const;
  /// Throws DataError if it is not what its manifest says.
  RawBytes read(const CheckpointManifest& manifest) const;

 private:
  std::filesystem::path folder(std::uint64_t number) const;
  void write_files(const std::filesystem::path& of_number, CheckpointManifest manifest,
                   std::span<const std::byte> state, bool durable) const;
  std::string heading() const { return "hearsay checkpoint of run " + run_id_ + "\n"; }

  std::filesystem::path directory_;
  std::string run_id_;
};

/// All that checkpoints have left in DIRECTORY, by name: for those who remove a run.
std::vector<std::filesystem::path> find_checkpoint_files(const std::filesystem::path& directory);
/// The folders that held them, and DIRECTORY, as far as they are empty.
void remove_checkpoint_folders(const std::filesystem::path& directory);

/// Writes checkpoints while the rank goes on. Memory: a checkpoint.
class CheckpointWriter {
 public:
  CheckpointWriter(CheckpointFolder folder, std::size_t keep) : folder_(std::move(folder)), keep_(keep) {}
  /// Waits for what is being written.
  ~CheckpointWriter() { wait(); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Empty, for the next state: once the one before has been written.
  RawBytes& buffer();
  /// Begins to write what the buffer holds. Where there is no time to lose it is left to the system to bring it to the
  /// disk.
  void write(const CheckpointManifest& manifest, bool durable = true);
  void wait();
  /// What could not be written since this was asked last.
  std::vector<std::string> problems();

 private:
  CheckpointFolder folder_;
  std::size_t keep_;
  RawBytes buffer_;
  std::future<std::string> writing_;
  std::vector<std::string> problems_;
};

}  // namespace hearsay
