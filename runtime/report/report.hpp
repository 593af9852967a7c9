#pragma once
// What a run leaves behind: runs/NAME/ (schema in docs/guide/report-format.md).
//
// Every rank writes its own metrics file; nothing is communicated for logging. Rank 0 writes the rest.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/metric.hpp"
#include "runtime/replica/parameters.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/identity/run_lock.hpp"
#include "runtime/transport/ledger.hpp"
#include "topology/topology.hpp"

namespace hearsay {

inline constexpr int report_schema_version = 1;

/// Section `report:` of the configuration.
struct ReportOptions {
  std::filesystem::path directory;      ///< `directory`, default runs/<default_name>, from the working directory
  std::int64_t every_iterations = 50;   ///< an iteration record every so many iterations
  bool segments = false;                ///< also norm, threshold and event of every segment at every iteration
  bool trace = false;                   ///< a time line per rank
  std::int64_t trace_iterations = 200;  ///< iterations that it shows; 0: all
  bool tensorboard = false;             ///< also event files for TensorBoard
  bool overwrite = false;               ///< replace an existing run folder
};
ReportOptions read_report_options(Config& report, const std::string& default_name);

/// A run folder while a run writes it: made, locked for this process, and free of earlier runs. Rank 0's; move-only.
class RunFolder {
 public:
  /// Throws ConfigError if another run is being written there, if it holds a run and `overwrite` is off, or if a file
  /// that no run has written, or a link in the place of a folder, is in the way; DataError if it cannot be written.
  /// Overwriting removes the files of a run and nothing else, and none of them where it throws.
  explicit RunFolder(const ReportOptions& options);
  /// The folder of a run that goes on: locked for this process. What it holds stays. Throws
  /// ConfigError if it holds no run, one is being written there, or links lead out of it.
  static RunFolder resumed(const std::filesystem::path& directory);
  /// The folder of the run `id`, which another process of the job has made: this one holds it, too, and may take it
  /// over when that one dies. Throws nothing.
  static RunFolder shared(const std::filesystem::path& directory, const std::string& id);
  /// The process that held it has died: this one does.
  void take_over() { lock_.take_over(); }
  /// Before the end of its life: the run writes nothing any more.
  void give_back() { lock_.give_back(); }
  /// The run's name for itself, which stands in every file of it.
  const std::string& id() const { return id_; }

 private:
  RunFolder(std::string id, RunLock lock) : id_(std::move(id)), lock_(std::move(lock)) {}
  std::string id_;
  RunLock lock_;
};

/// Throws DataError that names two files of the folder which are of different runs, if there are such. Runs of older
/// versions do not say.
void require_one_run(const std::filesystem::path& directory);

/// One line of metrics.rankNNNN.jsonl. Counters are cumulative over the run.
struct IterationRecord {
  Iteration iteration;
  double epoch;   ///< fraction of epochs done
  double time_s;  ///< since the first iteration
  double loss;
  LedgerTotals totals;
  std::uint64_t staleness_max;
  std::uint64_t messages_possible = 0;  ///< what this rank would have sent in D-PSGD until now; 0 on the global path
  double learning_rate = std::numeric_limits<double>::quiet_NaN();  ///< of iteration k; NaN: there is none
  std::vector<std::pair<std::string, double>> shares{};  ///< what the algorithm says of itself, this rank's fractions
  std::vector<std::uint64_t> neighbour_bytes{};          ///< sent to each neighbour, all kinds

  double messages_fraction() const;  ///< of messages_possible; 0 where nothing could be sent
};
struct EvaluationRecord {
  Iteration iteration;
  double epoch, time_s;
  double loss_mean_model;
  double consensus_distance;           ///< root mean square over ranks of ‖x_i − x̄‖₂
  std::vector<MetricValue> metrics{};  ///< of the averaged model; the task's own first
};

/// `directory`/metrics.rankNNNN.jsonl
std::filesystem::path metrics_file(const std::filesystem::path& directory, int rank);

/// Those that are there, of ranks below `ranks`, in the order of the ranks.
std::vector<std::pair<int, std::filesystem::path>> metrics_files(const std::filesystem::path& directory, int ranks);

/// Writes metrics.rankNNNN.jsonl; lines reach the disk every second or so. Lines that cannot be written are lost, and
/// `file` says so.
class MetricsWriter {
 public:
  /// Throws DataError if the file cannot be made. `run_id`: in the first line, if there is one.
  MetricsWriter(const std::filesystem::path& directory, int rank, const std::string& run_id = "");
  /// Goes on after the first `keep` bytes of the file that an earlier part of the run has written; see AppendedFile.
  MetricsWriter(const std::filesystem::path& directory, int rank, std::uintmax_t keep);
  const AppendedFile& file() const { return file_; }
  void flush() { file_.flush(); }
  void write(const IterationRecord& record);
  void write(const EvaluationRecord& record);
  /// One entry a segment each; empty spans are left out (an exchange without a trigger has no thresholds).
  void write_segments(Iteration k, std::span<const double> norms, std::span<const double> thresholds,
                      std::span<const std::uint8_t> events);

 private:
  void write_line(const std::string& line);
  AppendedFile file_;
  int rank_;
};

/// What rank 0 knows at the start: manifest.json.
struct Manifest {
  std::string run_id{};
  std::string command;
  std::string config_yaml;                      ///< complete; also written as config.yaml
  std::vector<std::string> hosts;               ///< one a rank
  std::map<std::string, std::string> versions;  ///< hearsay, mpi, libtorch, compiler
  std::uint64_t seed = 0;
  std::int64_t iterations = 0;  ///< of the whole run
  std::string model, dataset, exchange;
  std::vector<Iteration> resumed_at{};  ///< where the run was resumed, so far
};
void write_manifest(const std::filesystem::path& directory, const Manifest& manifest, const Topology& topology,
                    const Layout& layout);

/// How good the models of a run are by one metric.
struct RunQuality {
  Metric metric;
  double mean_model = std::numeric_limits<double>::quiet_NaN();                          ///< of the averaged model
  double rank_worst = std::numeric_limits<double>::quiet_NaN(), rank_mean = rank_worst;  ///< of every rank's own
};

/// The totals of a run over all ranks: summary.json. Names and units as in docs/guide/report-format.md.
/// A process that has died, and without which the others have gone on.
struct LostRank {
  std::optional<int> rank = 0;  ///< whose work it did; nothing: it was a spare that nobody had needed
  int process = 0;              ///< MPI's number: the rank's own, unless it had taken the rank's place
  double at_s = 0.0;            ///< when the rank that reports knew of it, since the first iteration
  std::int64_t iterations = 0;  ///< that it had begun, as far as others knew
};
/// A spare that has taken the place of a rank that had died.
struct JoinedRank {
  int rank = 0, process = 0;
  double at_s = 0.0;            ///< when the rank that reports knew that it had a model
  std::int64_t iterations = 0;  ///< that it had begun in the end, as far as the rank that reports knew
};

struct Summary {
  std::string status = "finished";         ///< finished, diverged, stopped, killed
  std::string message;                     ///< why, if not finished
  std::string run_id{};                    ///< the run's name for itself; runs of older versions have none
  std::vector<Iteration> resumed_at{};     ///< iterations of rank 0 at which the run was resumed
  std::vector<std::string> not_written{};  ///< files that could not be written, or not wholly, and why
  int ranks = 1;
  std::int64_t iterations = 0;
  double epochs = 0.0;
  std::uint64_t parameters = 0, segments = 0;
  std::uint64_t edges = 0;  ///< directed, that an iteration uses
  double spectral_gap = 1.0;
  std::string model, dataset, exchange, schedule;
  std::int64_t local_steps = 1;  ///< iterations of a round; 1: ranks exchange at every iteration
  std::string clock = "real";    ///< what times are readings of: real, or simulated
  /// What the averaged model and those of the ranks are worth on the test set, the task's own metric first: the one
  /// that tables show. Empty: not evaluated. Fill it with `take`.
  std::vector<RunQuality> metrics{};
  std::optional<double> accuracy_mean_model, accuracy_rank_min, accuracy_rank_mean;  ///< of `metrics`, if it is there
  std::optional<double> loss_mean_model;
  double consensus_distance = std::numeric_limits<double>::quiet_NaN();  ///< NaN: not measured
  LedgerTotals totals;
  /// What D-PSGD would send on this graph: segments × directed edges × iterations; 0 on the global path.
  std::uint64_t messages_possible = 0;
  /// What the dense algorithm of the same path would send: D-PSGD 4 bytes × parameters × directed edges × iterations, a
  /// ring all-reduce 2 (P − 1) · 4 bytes × parameters × iterations.
  std::uint64_t dense_payload_bytes = 0;
  /// Age in iterations of the copies of neighbours that were mixed, over all ranks; nothing where none are held.
  std::optional<double> staleness_mean, staleness_max, staleness_p99;
  /// The same in seconds, to a tenth.
  std::optional<double> staleness_median_s, staleness_p99_s;
  std::pair<std::int64_t, std::int64_t> rank_iterations{};  ///< the fewest and the most of a rank
  double idle_s = 0.0;  ///< mean over ranks: after a rank's last iteration, while others were computing
  std::map<std::string, double> shares{};  ///< fractions that the algorithm reports, over all ranks
  double wall_time_s = 0.0, time_per_iteration_s = 0.0;
  std::vector<double> phase_seconds;          ///< mean over ranks, in the order of phase_names
  std::vector<std::uint64_t> replica_hashes;  ///< one a rank that lives
  std::vector<LostRank> ranks_lost{};
  std::vector<JoinedRank> ranks_joined{};

  void take(const RunQuality& quality);
  /// The task's own metric; nothing if the run was not evaluated.
  std::optional<RunQuality> quality() const;

  double messages_fraction() const;       ///< of messages_possible; 0 where nothing could be sent
  double hidden_communication_s() const;  ///< time of collectives that nobody waited for
  double bytes_fraction() const;          ///< of dense_payload_bytes; 0 where nothing could be sent
};
/// summary.json's text.
std::string summary_text(const Summary& summary);
void write_summary(const std::filesystem::path& directory, const Summary& summary);
/// Throws DataError if there is no (whole) summary, naming the folder and what a run in progress lacks.
Summary read_summary(const std::filesystem::path& directory);

/// A ledger as bytes, to be gathered on rank 0, and back.
std::vector<std::byte> pack_ledger(const Ledger& ledger, const Neighbourhood& neighbourhood);
/// communication.csv (a line a directed edge), segments.csv (a line a segment, summed over ranks), staleness.csv (a
/// line an in-edge). `packed`: one a rank. Returns the totals over ranks. Throws CommunicationError if a packed ledger
/// does not fit the layout, DataError if a file cannot be written, unless `not_written` takes what there is to say of
/// that. `run_id`: the last column.
LedgerTotals write_communication(const std::filesystem::path& directory, std::span<const std::vector<std::byte>> packed,
                                 const Layout& layout, const std::string& run_id = "",
                                 std::vector<std::string>* not_written = nullptr);

/// Does what writes a file; if it throws DataError, says so in `not_written` and returns false. A run is not given up
/// because its report is.
bool write_if_possible(std::vector<std::string>& not_written, const std::function<void()>& write);

}  // namespace hearsay
