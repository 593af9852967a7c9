#pragma once
// tensorboard/rankNNNN/events.out.tfevents.TIME.HOST: one rank's records as TensorBoard reads them.
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "runtime/report/events/encoding.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {

/// Writes scalars, with the record's iteration as step. Numbers that are not finite, or were not measured, are left
/// out. Events reach the disk every second or so; what cannot be written is lost, and `file` says so.
class EventFile {
 public:
  /// Makes the rank's folder in the run folder `directory`. `host`: where the rank runs, a part of the file's name.
  /// `run_id`: its last part, if there is one. No link is followed. Throws DataError.
  EventFile(const std::filesystem::path& directory, int rank, const std::string& host, const std::string& run_id = "");
  const AppendedFile& file() const { return file_; }
  void flush() { file_.flush(); }
  /// Training begins now: an event's wall time is this moment's plus the record's `time_s` (in a simulation simulated).
  void start_clock();
  void write(const IterationRecord& record);
  void write(const EvaluationRecord& record);
  /// One entry a segment each, or none; `layout` names them.
  void write_segments(Iteration k, double time_s, const Layout& layout, std::span<const double> norms,
                      std::span<const double> thresholds);

 private:
  void write_scalars(double time_s, Iteration step, std::span<const Scalar> scalars);
  double start_s_;  // since 1970
  AppendedFile file_;
};

/// The rank's event file, if `report.tensorboard` asks for one.
std::optional<EventFile> open_event_file(const ReportOptions& options, int rank, const std::string& host,
                                         const std::string& run_id = "");

/// The event files in a run folder, by name.
std::vector<std::filesystem::path> find_event_files(const std::filesystem::path& directory);
/// The folders that held them, as far as they are empty.
void remove_event_folders(const std::filesystem::path& directory);

}  // namespace hearsay
