#pragma once
// A run folder as it grows: what `hearsay watch` shows. Reads files only; the run does not notice.
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/metric.hpp"

namespace hearsay {

/// The newest iteration record of a rank, and what it says about the time since the one before.
struct WatchedRank {
  std::int64_t iteration = -1;  ///< k of the record; −1: none yet
  double epoch = 0.0, time_s = 0.0, loss = 0.0;
  double iterations_per_second = 0.0;
  std::uint64_t messages = 0, bytes_sent = 0, staleness_max = 0;
  std::vector<std::uint64_t> neighbour_bytes;  ///< sent to each neighbour since the start
  std::vector<double> neighbour_rates;         ///< bytes a second to each neighbour
  double between_records_s = 0.0;              ///< this one and the one before, by the rank's clock
  std::filesystem::file_time_type heard{};     ///< when its file last changed
};

class WatchedRun {
 public:
  /// Throws DataError if `directory` has no whole manifest.json.
  explicit WatchedRun(std::filesystem::path directory);
  /// Reads what the ranks have written since the last call. Throws DataError if a whole line is not a record.
  void poll();

  const std::filesystem::path& directory() const { return directory_; }
  int ranks() const { return static_cast<int>(watched_.size()); }
  const WatchedRank& rank(int r) const { return watched_[static_cast<std::size_t>(r)]; }
  /// None on the global path, where everybody may talk to everybody.
  const std::vector<int>& neighbours(int r) const { return neighbours_[static_cast<std::size_t>(r)]; }
  const std::string& title() const { return title_; }      ///< "eventgrad, mnist_cnn on mnist"
  std::int64_t iterations() const { return iterations_; }  ///< of the whole run; 0: not known
  std::size_t segments() const { return segments_; }
  /// Mean of rank 0's losses, one number a record, oldest first; at most `kept_losses` of them.
  const std::deque<double>& losses() const { return losses_; }
  /// How good the averaged model was in the last evaluation, by the task's own metric.
  const std::optional<MetricValue>& quality() const { return quality_; }
  /// Seconds since any rank has written something, or since the run began; by the clock of the file system.
  double silent_s() const;
  /// `status` of summary.json once it is there.
  std::optional<std::string> status() const { return status_; }

  static constexpr std::size_t kept_losses = 2000;

 private:
  void read_manifest();
  void read_new_lines(int rank, const std::filesystem::path& file);
  void take(int rank, const std::filesystem::path& file, const std::string& line);

  std::filesystem::path directory_;
  std::string title_;
  std::int64_t iterations_ = 0;
  std::size_t segments_ = 0;
  std::vector<std::vector<int>> neighbours_;
  std::vector<WatchedRank> watched_;
  std::vector<std::uintmax_t> read_;          // bytes of each rank's file
  std::filesystem::file_time_type newest_{};  // of all files
  std::deque<double> losses_;
  std::optional<MetricValue> quality_;
  std::optional<std::string> status_;
};

}  // namespace hearsay
