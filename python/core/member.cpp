#include "python/core/member.hpp"

#include <unistd.h>
#include <hearsay_version.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "base/error.hpp"
#include "runtime/data/metric.hpp"
#include "runtime/report/identity/run_id.hpp"

namespace hearsay::python {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::shared_ptr<const Topology> built(const JobPlan& plan, int ranks) {
  plan.exchange->require_ranks(ranks);
  return std::make_shared<const Topology>(plan.topology->build(ranks));
}

std::string segments_of(const Layout& layout) {
  std::string text;
  for (const Segment& s : layout.segments()) {
    text += s.name;
    for (const std::int64_t n : s.shape) text += ' ' + std::to_string(n);
    text += '\n';
  }
  return text;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

double seconds_between(TimePoint from, TimePoint to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

Member::Member(mpi::CommunicatorHandle ranks, std::shared_ptr<const JobPlan> plan, std::shared_ptr<Parameters> replica,
               Program program)
    : plan_(std::move(plan)),
      replica_(std::move(replica)),
      program_(std::move(program)),
      epoch_length_(program_.iterations_per_epoch),
      communicator_([this] { participant_.serve(); }, ranks),
      departures_(ranks, communicator_.rank(), communicator_.size()),
      participant_(ranks, (require_same_job(), built(*plan_, communicator_.size())), *plan_->exchange, *replica_,
                   {.iterations_per_epoch = program_.iterations_per_epoch,
                    .step = program_.step,
                    .interrupted = [this] { return interrupted(); }}),
      ready_(replica_->layout.count()),
      learning_rate_(unknown),
      consensus_distance_(unknown) {
  participant_.engine().run([this] { write_start_of_run(); });
  metrics_.emplace(plan_->report.directory, rank(), run_id_);
}

/// Before anything is changed: what does not fit leaves no run folder. Runs `idle` of no participant yet.
void Member::require_same_job() {
  static_cast<void>(built(*plan_, communicator_.size()));
  mpi::Communicator before([] {}, communicator_.handle());
  if (const std::string others = ranks_that_differ(before, plan_->yaml); !others.empty())
    throw ConfigError("the configuration of rank " + others +
                      " differs from that of rank 0; give all ranks the same file or dictionary");
  if (const std::string others = ranks_that_differ(before, segments_of(replica_->layout)); !others.empty())
    throw ConfigError("the parameters of rank " + others +
                      " have other names or shapes than those of rank 0; make the same model on every rank");
  if (before.rank() == 0) run_id_ = folder_.emplace(plan_->report).id();
  run_id_.resize(run_id_length);
  before.broadcast(std::as_writable_bytes(std::span(run_id_)), 0);
}

/// Collective; runs on the communication thread.
void Member::write_start_of_run() {
  const ReportOptions& report = plan_->report;
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::vector<std::string> hosts = gather_texts(communicator_, host);
  if (rank() == 0) {
    program_.versions["hearsay"] = std::string(full_version);
    program_.versions["mpi"] = mpi::Environment::library_version();
    program_.versions["compiler"] = __VERSION__;
    write_manifest(report.directory,
                   {.run_id = run_id_,
                    .command = program_.command,
                    .config_yaml = plan_->yaml,
                    .hosts = hosts,
                    .versions = program_.versions,
                    .seed = plan_->seed,
                    .iterations = program_.iterations,
                    .model = plan_->model,
                    .dataset = plan_->dataset,
                    .exchange = plan_->exchange_name},
                   participant_.topology(), replica_->layout);
  }
  if (auto file = open_event_file(report, rank(), host, run_id_)) events_.emplace(std::move(*file));
  if (report.trace) {
    const Trace::Rank own{rank(), ranks(), participant_.neighbourhood().neighbours, host, run_id_};
    trace_.emplace(own, report.trace_iterations, participant_.ledger().now());
    participant_.ledger().watched_by(&*trace_);
  }
  communicator_.barrier();
}

bool Member::interrupted() const { return interruption_.come() || departed(); }

std::optional<std::string> Member::departed() const {
  const Iteration step = waiting_in_;
  if (step < 0 || !plan_->in_step()) return std::nullopt;
  const std::optional<Departure> left = departures_.seen();
  if (!left || step < left->steps) return std::nullopt;
  return "rank " + std::to_string(left->rank) + " has left the job after " + std::to_string(left->steps) +
         " steps, and this rank waits for it in step " + std::to_string(step + 1) +
         "; make the same number of steps on every rank (member.share(loader) deals them evenly), or use "
         "exchange.schedule: asynchronous";
}

void Member::start() {
  if (in_step_) throw std::runtime_error("member.start(): step " + std::to_string(done_ + 1) + " is not over yet");
  Ledger& ledger = participant_.ledger();
  if (first_ == TimePoint{}) {
    first_ = last_ = ledger.now();
    if (events_) events_->start_clock();
  }
  std::ranges::fill(ready_, std::uint8_t{0});
  handed_on_ = ready_.size();
  in_step_ = true;
  waiting_in_ = done_;
  if (trace_) trace_->iteration(done_);
  participant_.start(done_);
  phase_start_ = ledger.now();
}

// Handed on from the last segment to the first on every rank, whatever the order in which a rank's backward pass has
// them: collectives that begin in different orders would wait for each other.
void Member::gradient_ready(SegmentId segment) {
  if (!in_step_) throw std::runtime_error("member.gradient_ready() outside of a step; call member.start() before");
  if (segment >= ready_.size())
    throw std::runtime_error("member.gradient_ready(): there is no segment " + std::to_string(segment) + " of " +
                             std::to_string(ready_.size()));
  if (ready_[segment] != 0)
    throw std::runtime_error("the gradient of '" + replica_->layout[segment].name +
                             "' was made twice in one step, and has been sent already; where a step has several "
                             "backward passes say so: member.step(optimizer, backward_passes=2)");
  ready_[segment] = 1;
  if (trace_) trace_->gradient(segment, participant_.ledger().now());
  if (!participant_.layer_wise()) return;
  while (handed_on_ > 0 && ready_[handed_on_ - 1] != 0)
    participant_.gradient_ready(static_cast<SegmentId>(--handed_on_));
}

void Member::finish(std::optional<double> learning_rate) {
  if (!in_step_) throw std::runtime_error("member.finish() outside of a step; call member.start() before");
  Ledger& ledger = participant_.ledger();
  ledger.spend({.phase = Phase::compute, .from = phase_start_, .to = ledger.now()});
  if (participant_.layer_wise())
    while (handed_on_ > 0) participant_.gradient_ready(static_cast<SegmentId>(--handed_on_));
  if (learning_rate) participant_.learning_rate(learning_rate_ = *learning_rate);
  participant_.finish(done_);
  phase_start_ = ledger.now();
}

void Member::stepped(double loss) {
  if (!in_step_) throw std::runtime_error("member.stepped() outside of a step; call member.start() before");
  Ledger& ledger = participant_.ledger();
  ledger.spend({.phase = Phase::optimizer, .from = phase_start_, .to = ledger.now()});
  participant_.stepped(done_);
  in_step_ = false;
  waiting_in_ = -1;
  const ReportOptions& report = plan_->report;
  const Exchange& exchange = participant_.exchange();
  if (report.segments) metrics_->write_segments(done_, exchange.norms(), exchange.thresholds(), exchange.events());
  ++done_, ++unrecorded_;
  last_ = ledger.now();
  if (!std::isnan(loss)) {
    loss_sum_ += loss;
    ++loss_count_;
  }
  if (done_ % report.every_iterations == 0) record();
}

double Member::seconds() const { return seconds_between(first_, last_); }

void Member::record() {
  if (unrecorded_ == 0) return;
  const Exchange& exchange = participant_.exchange();
  const Ledger& ledger = participant_.ledger();
  const Neighbourhood& around = participant_.neighbourhood();
  const bool along_graph = plan_->exchange->laws().along_graph;
  std::vector<std::pair<std::string, double>> shares;
  for (const Share& share : exchange.shares()) shares.emplace_back(share.name, share.fraction());
  std::vector<std::uint64_t> bytes;
  if (!participant_.topology().everybody)
    for (std::size_t edge = 0; edge < ledger.neighbours(); ++edge) bytes.push_back(ledger.edge(edge).bytes());
  const IterationRecord now{
      .iteration = done_ - 1,
      .epoch = epoch(done_),
      .time_s = seconds(),
      .loss = loss_count_ > 0 ? loss_sum_ / static_cast<double>(loss_count_) : unknown,
      .totals = ledger.totals(),
      .staleness_max = ledger.staleness_max(),
      .messages_possible =
          along_graph ? static_cast<std::uint64_t>(done_) * replica_->layout.count() * around.sends() : 0,
      .learning_rate = learning_rate_,
      .shares = std::move(shares),
      .neighbour_bytes = std::move(bytes)};
  metrics_->write(now);
  if (events_) {
    events_->write(now);
    if (plan_->report.segments)
      events_->write_segments(now.iteration, now.time_s, replica_->layout, exchange.norms(), exchange.thresholds());
  }
  loss_sum_ = 0.0;
  loss_count_ = unrecorded_ = 0;
}

void Member::broadcast(std::span<std::byte> bytes) {
  participant_.engine().run([&] { communicator_.broadcast(bytes, 0); });
}

double Member::average(std::span<const float> more, std::vector<float>& mean) {
  const std::span<const float> x = replica_->values.span();
  mean.assign(x.begin(), x.end());
  mean.insert(mean.end(), more.begin(), more.end());
  participant_.engine().run([&] { communicator_.sum(mean); });
  for (float& value : mean) value /= static_cast<float>(ranks());
  std::vector<double> squares(1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(mean[i]);
    squares[0] += difference * difference;
  }
  participant_.engine().run([&] { communicator_.sum(squares); });
  return consensus_distance_ = std::sqrt(squares[0] / ranks());
}

/// The root mean square over ranks of ‖x_i − mean‖, piece by piece: without a block for the mean, here or in MPI.
void Member::measure_consensus() {
  constexpr std::size_t piece = std::size_t{1} << 16;
  const std::span<const float> x = replica_->values.span();
  std::vector<double> squares(1);
  std::vector<float> mean;
  for (std::size_t begin = 0; begin < x.size(); begin += piece) {
    const std::span<const float> own = x.subspan(begin, std::min(piece, x.size() - begin));
    mean.assign(own.begin(), own.end());
    participant_.engine().run([&] { communicator_.sum(mean); });
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double difference =
          static_cast<double>(own[i]) - static_cast<double>(mean[i] / static_cast<float>(ranks()));
      squares[0] += difference * difference;
    }
  }
  participant_.engine().run([&] { communicator_.sum(squares); });
  consensus_distance_ = std::sqrt(squares[0] / ranks());
}

Evaluation Member::evaluated(Evaluation evaluation) {
  std::vector<double> least{evaluation.own_accuracy}, sum = least;
  std::vector<double> of_mean{evaluation.accuracy, evaluation.loss};
  participant_.engine().run([&] {
    communicator_.minimum(least);
    communicator_.sum(sum);
    communicator_.broadcast(std::as_writable_bytes(std::span(of_mean)), 0);
  });
  evaluation = {.accuracy = of_mean[0],
                .loss = of_mean[1],
                .own_accuracy = evaluation.own_accuracy,
                .accuracy_min = least[0],
                .accuracy_mean = sum[0] / ranks()};
  evaluation_ = evaluation;
  if (rank() == 0) {
    const EvaluationRecord record{.iteration = done_,
                                  .epoch = epoch(done_),
                                  .time_s = seconds(),
                                  .loss_mean_model = evaluation.loss,
                                  .consensus_distance = consensus_distance_,
                                  .metrics = {{accuracy_metric(), evaluation.accuracy}}};
    metrics_->write(record);
    if (events_) events_->write(record);
  }
  return evaluation;
}

void Member::evaluate_for(double seconds) {
  const TimePoint now = participant_.ledger().now();
  const auto spent = std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  participant_.ledger().spend({.phase = Phase::evaluate, .from = now - spent, .to = now});
}

std::uint64_t Member::replica_hash() const { return hearsay::replica_hash(replica_->values.span()); }

std::size_t Member::memory_bytes() const {
  const std::size_t neighbours = participant_.neighbourhood().neighbours.size();
  return Participant::window_bytes(*plan_->exchange, replica_->layout, neighbours, ranks()) +
         plan_->exchange->kept_bytes(replica_->layout, neighbours, ranks());
}

std::vector<std::string> Member::warnings() const {
  std::vector<std::string> sentences = plan_->notes;
  std::ranges::copy(plan_->exchange->warnings(participant_.topology()), std::back_inserter(sentences));
  return sentences;
}

Summary Member::own_summary(const std::string& status) const {
  Summary summary;
  summary.status = status;
  summary.run_id = run_id_;
  summary.ranks = ranks();
  summary.iterations = done_;
  summary.epochs = epoch(done_);
  summary.parameters = replica_->layout.size();
  summary.segments = replica_->layout.count();
  summary.edges = static_cast<std::uint64_t>(participant_.topology().edges_in_use());
  if (rank() == 0 || status != "finished") summary.spectral_gap = participant_.topology().spectrum().gap;
  summary.model = plan_->model;
  summary.dataset = plan_->dataset;
  summary.exchange = plan_->exchange_name;
  summary.schedule = schedule_name(plan_->exchange->schedule());
  count_possible(summary, plan_->exchange->laws().along_graph);
  return summary;
}

/// Asynchronous ranks may have made different numbers of steps. Calls MPI.
void Member::note_steps_of_all(Summary& summary) {
  std::vector<double> least{static_cast<double>(done_)}, most = least;
  communicator_.minimum(least);
  communicator_.maximum(most);
  if (least[0] != most[0])
    summary.message = "the ranks made " + std::to_string(static_cast<Iteration>(least[0])) + " to " +
                      std::to_string(static_cast<Iteration>(most[0])) + " steps";
}

/// Rank 0's text. Calls MPI.
std::string Member::shared_with_all(std::string text) {
  std::uint64_t length = text.size();
  communicator_.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0);
  text.resize(length);
  communicator_.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

std::string Member::summary() {
  if (in_step_) throw std::runtime_error("member.summary() inside a step; ask between two steps");
  // Said before anything else is waited for: a rank that is in a further step by now would wait for ever.
  participant_.engine().run([this] { departures_.tell(done_); });
  participant_.settle();
  record();
  if (trace_) trace_->write(plan_->report.directory);
  measure_consensus();
  Summary summary = own_summary("finished");
  summary.consensus_distance = consensus_distance_;
  if (evaluation_) {
    const auto measured = [](double x) { return std::isnan(x) ? std::nullopt : std::optional(x); };
    summary.loss_mean_model = measured(evaluation_->loss);
    if (!std::isnan(evaluation_->accuracy))
      summary.take({.metric = accuracy_metric(),
                    .mean_model = evaluation_->accuracy,
                    .rank_worst = evaluation_->accuracy_min,
                    .rank_mean = evaluation_->accuracy_mean});
  }
  const RankResult result{.times = {.wall_s = seconds(), .evaluate_s = participant_.ledger().seconds(Phase::evaluate)},
                          .iterations = done_,
                          .replica_hash = replica_hash(),
                          .shares = participant_.exchange().shares()};
  std::string text;
  participant_.engine().run([&] {
    departures_.forget();  // nobody tells before all have: the sums below wait for everybody
    note_steps_of_all(summary);
    complete_summary(summary, communicator_,
                     {.ledger = participant_.ledger(),
                      .neighbourhood = participant_.neighbourhood(),
                      .layout = replica_->layout,
                      .directory = plan_->report.directory},
                     result);
    if (rank() == 0) {
      write_summary(plan_->report.directory, summary);
      text = contents(plan_->report.directory / "summary.json");
    }
    text = shared_with_all(std::move(text));
  });
  return text;
}

/// What a job must have in common with the one whose state it takes up stands first.
void Member::state(Archive& archive) {
  const auto same = [&](const char* what, const std::string& here) {
    std::string there = here;
    archive.text(what, there, std::max<std::size_t>(here.size(), 1 << 20));
    if (there != here) archive.refuse(what, "here: " + here + "; in the saved state: " + there);
  };
  same("rank", std::to_string(rank()) + " of " + std::to_string(ranks()));
  same("exchange", plan_->exchange_name + ", " + std::string(schedule_name(plan_->exchange->schedule())));
  same("parameters", segments_of(replica_->layout));
  std::string around;
  for (const int neighbour : participant_.neighbourhood().neighbours) around += ' ' + std::to_string(neighbour);
  same("neighbours in the graph", around);
  archive.value("steps", done_);
  participant_.state(archive);
}

RawBytes Member::state() {
  if (in_step_) throw std::runtime_error("member.state_dict() inside a step; ask between two steps");
  RawBytes bytes;
  participant_.engine().run([this] { departures_.tell(done_); });
  if (plan_->in_step())
    participant_.engine().run([this] { communicator_.barrier(); });
  else
    participant_.settle();
  Archive archive = Archive::saving(bytes);
  state(archive);
  participant_.engine().run([this] {
    departures_.forget();
    communicator_.barrier();
  });
  return bytes;
}

void Member::load_state(std::span<const std::byte> bytes) {
  if (in_step_ || done_ > 0)
    throw std::runtime_error("member.load_state_dict() after " + std::to_string(done_) +
                             " steps; load between hearsay.join and the first step");
  Archive archive = Archive::loading(bytes, "the member's state");
  state(archive);
  if (archive.left() > 0) archive.refuse("end", "there are " + std::to_string(archive.left()) + " bytes too many");
  participant_.engine().run([this] { communicator_.barrier(); });
}

void Member::write_ending(const std::string& status, const std::string& message) {
  Summary summary = own_summary(status);
  summary.message = message;
  if (unrecorded_ > 0) record();
  if (trace_) trace_->write(plan_->report.directory);
  write_summary(plan_->report.directory, summary);
}

}  // namespace hearsay::python
