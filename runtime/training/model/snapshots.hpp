#pragma once
// Models that a rank leaves on its way, for all ranks to evaluate together when training is over: nobody waits.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {

/// A file of this rank's in the run folder, snapshots.rankNNNN.bin, which goes with the object. Cost: a copy of the
/// model to the page cache a snapshot, which the operating system writes when it has time.
class Snapshots {
 public:
  struct Taken {
    double job_iterations;  ///< how far the job was, at least
    double time_s;
  };

  /// `model` must outlive them.
  /// `run_id`: stands before the models.
  Snapshots(Model& model, const std::filesystem::path& directory, int rank, std::string run_id);
  ~Snapshots();
  /// That of a rank which cannot do it itself any more.
  static void remove_file(const std::filesystem::path& directory, int rank);
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  /// The model as it is. Throws DataError if it cannot be written.
  void leave(const Taken& taken);
  const std::vector<Taken>& taken() const { return taken_; }
  /// How many there are, and of when. Saving keeps the file when the object goes; loading opens it again. Where it is
  /// gone, because they have been evaluated, `lost` says so.
  void state(Archive& archive);
  /// The first so many cannot be loaded.
  std::size_t lost() const { return lost_; }
  /// The file goes with the object after all.
  void keep_file(bool keep) { kept_ = keep; }
  /// The model ← snapshot i, buffers included. Throws DataError if it cannot be read.
  void load(std::size_t i);

 private:
  std::streamoff offset(std::size_t i) const;
  void make_file();

  Model& model_;
  std::filesystem::path path_;
  std::string run_id_;
  std::fstream file_;
  std::vector<Taken> taken_;
  std::size_t lost_ = 0;
  bool kept_ = false;
};

}  // namespace hearsay
