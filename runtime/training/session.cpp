#include "runtime/training/session.hpp"

#include <atomic>
#include <cstdio>
#include <optional>

#include "base/error.hpp"
#include "runtime/mpi/driver.hpp"
#include "runtime/mpi/peers.hpp"
#include "runtime/mpi/window.hpp"
#include "runtime/report/trace.hpp"
#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/evaluator.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/training/process/rank_generator.hpp"
#include "runtime/training/process/same_run.hpp"
#include "runtime/training/process/threads.hpp"
#include "runtime/training/run_log.hpp"
#include "runtime/training/set_up.hpp"

namespace hearsay {
namespace {

std::filesystem::path replica_file(const RunPlan& plan, int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "model.rank%04d.pt", rank);
  return plan.report().directory / name;
}

/// Everything that trains on one rank. Members are destroyed in the reverse of the order in which they depend on each
/// other: first the exchange, then the engine (which joins its thread), the mailbox and the window.
class Session {
 public:
  Session(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options);
  Summary run();

 private:
  void prepare();
  bool observe(Iteration k, double loss);
  void evaluate(Iteration done);
  /// Slower neighbours may still wait for what this rank has posted.
  void finish_sending() {
    engine_->wait_until([this] { return !mailbox_.sending(); });
  }
  void settle();
  Summary finish();
  [[noreturn]] void leave_stopped();
  void watch();
  void serve();
  void count(int to, const Message& message);
  RunLog::Sources sources() const;
  RankResult result() const;
  RankAccount account() const;
  double compute();

  const RunPlan& plan_;
  const TrainOptions& options_;
  const int rank_;
  const std::string host_;
  const StopSignal stop_;
  const Topology topology_;
  const Neighbourhood neighbourhood_;
  const ImageData data_;
  Model model_;
  RankGenerator random_;
  TrainingBatches batches_;
  const RunLength length_;
  Ledger ledger_;
  std::atomic<bool> training_{false};  // a signal ends waits from then on
  mpi::Communicator communicator_;     // not to be used any more after that
  mpi::Communicator farewell_;         // for ranks that a signal has stopped
  mpi::Peers peers_;
  mpi::Window window_;
  Mailbox mailbox_;
  std::optional<Trace> trace_;
  std::unique_ptr<CommunicationEngine> engine_;
  Evaluator evaluator_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Trainer> trainer_;
  std::optional<RunLog> log_;
  Evaluator::MeanModel mean_model_{};
  RunTimes times_;
};

Session::Session(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options)
    : plan_(plan),
      options_(options),
      rank_(environment.rank()),
      host_(environment.host()),
      topology_(plan.topology(environment.ranks())),
      neighbourhood_(topology_.neighbourhood(rank_)),
      data_(load_data(plan.parts())),
      model_(make_model(plan.parts(), data_.train, static_cast<std::uint64_t>(rank_), environment.rank_on_host())),
      random_(options.shares_process),
      batches_(make_batches(plan.parts(), data_, environment.ranks(), rank_)),
      length_(plan.length(data_.train.size(), environment.ranks())),
      ledger_(neighbourhood_.neighbours.size(), model_.replica().layout.count(), mpi::clock()),
      communicator_([this] { serve(); }),
      farewell_([this] { mailbox_.progress(); }),
      peers_({.idle = [this] { serve(); }, .sent = [this](int to, const Message& m) { count(to, m); }}),
      window_(MailboxMap{.degree = static_cast<int>(neighbourhood_.neighbours.size()),
                         .capacity_bytes = ring_bytes(plan.parts(), model_.replica().layout)}
                  .total_bytes()),
      mailbox_(window_, topology_, rank_, ring_bytes(plan.parts(), model_.replica().layout), ledger_),
      engine_(mpi::make_engine([this] { return mailbox_.progress(); }, window_)),
      evaluator_(model_, test_images(data_), communicator_, *engine_, ledger_),
      optimizer_(plan.parts().optimizer->build(model_)) {}

/// What the communication thread does while a collective operation waits.
void Session::serve() {
  mailbox_.progress();
  if (training_ && stop_.received() != 0) throw WaitInterrupted();
}

/// Without the graph of the neighbour algorithms everybody is everybody's neighbour.
void Session::count(int to, const Message& message) {
  ledger_.message_sent(neighbourhood_.slot(to),
                       {.payload_bytes = message.payload_bytes, .index_bytes = message.index_bytes},
                       message.bytes.size());
}

RunLog::Sources Session::sources() const {
  return {.plan = plan_,
          .options = options_,
          .topology = topology_,
          .layout = model_.replica().layout,
          .ledger = ledger_,
          .length = length_,
          .rank = rank_,
          .host = host_};
}

RankAccount Session::account() const {
  return {.ledger = ledger_,
          .neighbourhood = neighbourhood_,
          .layout = model_.replica().layout,
          .directory = plan_.report().directory};
}

RankResult Session::result() const {
  return {.times = times_,
          .replica_hash = replica_hash(fetched(*model_.replica().device, model_.replica().values.span())),
          .shares = exchange_->shares()};
}

/// All ranks start from the same model and together.
void Session::prepare() {
  engine_->run([&] {
    start_from_rank_0(model_, communicator_);
    const auto hosts = gather_texts(communicator_, host_);
    if (rank_ == 0) write_start(sources(), hosts);
  });
  exchange_ = build_exchange(*plan_.parts().exchange, {.neighbourhood = neighbourhood_,
                                                       .replica = model_.replica(),
                                                       .mailbox = mailbox_,
                                                       .engine = *engine_,
                                                       .ledger = ledger_,
                                                       .peers = peers_,
                                                       .iterations_per_epoch = length_.iterations_per_epoch,
                                                       .interrupted = [this] { return stop_.received() != 0; }});
  if (exchange_->layer_wise()) {
    model_.on_gradient([this](SegmentId s) {
      if (trace_) trace_->gradient(s, ledger_.now());
      random_.keep();
      exchange_->gradient_ready(s);
      random_.use();
    });
  }
  trainer_ = std::make_unique<Trainer>(Trainer::Parts{.exchange = *exchange_,
                                                      .loss_and_gradient = [this] { return compute(); },
                                                      .optimizer = *optimizer_,
                                                      .learning_rate = *plan_.parts().learning_rate,
                                                      .ledger = ledger_,
                                                      .rank = rank_});
  log_.emplace(sources());
  engine_->run([&] { communicator_.barrier(); });
}

/// Draws the time line from now on, if the configuration asks for one.
void Session::watch() {
  const ReportOptions& report = plan_.report();
  if (!report.trace) return;
  engine_->run([&] {
    trace_.emplace(Trace::Rank{rank_, topology_.ranks(), neighbourhood_.neighbours, host_}, report.trace_iterations,
                   ledger_.now());
    ledger_.watched_by(&*trace_);
  });
}

/// Forward and backward at x_k, and the time that it is to take.
double Session::compute() {
  random_.use();
  const double loss = model_.loss_and_gradient(batches_.next());
  random_.keep();
  if (options_.compute_s) mpi::pass_time(options_.compute_s(trainer_->iterations_done()), *engine_, window_);
  return loss;
}

/// Between two iterations: records, progress, evaluation, stop. False ends training.
bool Session::observe(Iteration k, double loss) {
  if (trace_) trace_->iteration(k + 1);
  log_->iteration(k, loss, *exchange_);
  const Iteration done = k + 1;
  const Iteration every = plan_.parts().evaluate_every_epochs * length_.iterations_per_epoch;
  if (every > 0 && done % every == 0 && done < length_.iterations) evaluate(done);
  return stop_.received() == 0;
}

void Session::evaluate(Iteration done) {
  finish_sending();  // in a simulation nobody sends while a rank is in a collective
  mean_model_ = evaluator_.mean_model();
  log_->evaluation(done, mean_model_.accuracy, mean_model_.loss, mean_model_.consensus_distance);
}

/// Everything posted is sent, and no rank leaves while another may still need it.
void Session::settle() {
  finish_sending();
  engine_->run([&] {
    communicator_.barrier();
    mailbox_.progress();
    communicator_.barrier();
  });
}

Summary Session::run() {
  prepare();
  training_ = true;
  log_->start_clock();
  watch();
  try {
    trainer_->run(length_, [this](Iteration k, double loss) { return observe(k, loss); });
    times_ = {.wall_s = log_->seconds(), .evaluate_s = ledger_.seconds(Phase::evaluate)};
    if (stop_.received() == 0) return finish();
  } catch (const WaitInterrupted&) {
    times_ = {.wall_s = log_->seconds(), .evaluate_s = ledger_.seconds(Phase::evaluate)};
  } catch (const DivergenceError& error) {
    Summary summary = log_->summary("diverged", trainer_->iterations_done());
    summary.message = error.what();
    if (trace_) trace_->write(plan_.report().directory);
    write_summary(plan_.report().directory, summary);
    throw;
  }
  leave_stopped();
}

Summary Session::finish() {
  settle();
  if (trace_) trace_->write(plan_.report().directory);
  evaluate(trainer_->iterations_done());
  const Evaluator::Ranks ranks = evaluator_.every_rank();
  if (plan_.parts().save_model) evaluator_.save_mean_model(plan_.report().directory / "model.pt");
  Summary summary = log_->summary("finished", trainer_->iterations_done());
  summary.accuracy_mean_model = mean_model_.accuracy;
  summary.loss_mean_model = mean_model_.loss;
  summary.consensus_distance = mean_model_.consensus_distance;
  summary.accuracy_rank_min = ranks.accuracy_min;
  summary.accuracy_rank_mean = ranks.accuracy_mean;
  engine_->run([&] {
    complete_summary(summary, communicator_, account(), result());
    if (rank_ == 0) write_summary(plan_.report().directory, summary);
    communicator_.barrier();
  });
  return summary;
}

/// The replica is saved before anything else: the launcher may kill the job a second after the signal.
void Session::leave_stopped() {
  constexpr double patience_s = 10.0;
  const Stopped stopped(stop_.received());
  model_.save(replica_file(plan_, rank_));
  if (trace_) trace_->write(plan_.report().directory);
  Summary summary = log_->summary("stopped", trainer_->iterations_done());
  summary.message = stopped.what();
  engine_->run([&] {
    if (farewell_.barrier_within(patience_s))
      complete_summary(summary, farewell_, account(), result());
    else
      summary.message += "; not every rank has received the signal";
    if (rank_ == 0) write_summary(plan_.report().directory, summary);
  });
  throw stopped;
}

}  // namespace

Summary train(mpi::Environment& environment, const RunPlan& plan, const TrainOptions& options) {
  {
    mpi::Communicator communicator;
    require_same_run(communicator, plan.dump());
    static_cast<void>(plan.topology(environment.ranks()));  // a P that does not fit leaves no run folder
    if (environment.rank() == 0) prepare_run_folder(plan.report());
    communicator.barrier();
  }
  use_threads(plan.parts().threads);
  Session session(environment, plan, options);
  return session.run();
}

}  // namespace hearsay
