#pragma once
// A participant: one rank's end of the job. It owns what that takes, in the order in which one part needs another: the
// transport, the ledger, the mailbox, the engine that drives communication, the exchange. No LibTorch.
//
// The session, the benchmarks, the simulator and the tests hold one each, and so does a training loop of one's own:
// apps/examples/own_loop.cpp.
#include <functional>
#include <memory>
#include <span>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/pulse.hpp"
#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/replica/finite_watch.hpp"
#include "runtime/transport/failure_detector.hpp"
#include "runtime/transport/job_count.hpp"
#include "runtime/transport/transport.hpp"

namespace hearsay {

/// The sections `exchange`, `topology`, `trigger` and `sparsify` of a configuration, read and checked once;
/// participants can be made from it many times, on any thread.
class ParticipantPlan {
 public:
  /// Throws ConfigError, with file, line and column, for anything that is wrong and for any other section.
  explicit ParticipantPlan(Config root);

  const ExchangePlan& exchange() const { return *exchange_; }
  /// Throws ConfigError if graph, weights or exchange do not fit so many ranks.
  std::shared_ptr<const Topology> topology(int ranks) const;

 private:
  std::unique_ptr<ExchangePlan> exchange_;
  std::unique_ptr<TopologyPlan> topology_;
};

struct ParticipantOptions {
  /// Densities that change by the epoch go by it.
  EpochLength iterations_per_epoch{};
  /// What the loop's optimizer makes of a gradient, in all segments, until the loop says something else
  /// (Participant::learning_rate, `steps`). Only exchanges that measure steps ask.
  StepResponse step{};
  /// All ranks get rank 0's x; without it the caller sees to it that they begin with the same.
  bool start_from_rank_0 = true;
  /// Ranks go on without those that die: whoever has not been heard of for so long is dead. 0: a death is the end of
  /// the job, and the launcher's business. Only with an exchange that survives it (ExchangePlan::survives_deaths).
  std::chrono::nanoseconds failure_timeout{0};
  /// So many of the transport's ranks, the last, have no place in the graph: each may take that of a rank that has died
  /// (Participant::take_over). Only with a failure_timeout.
  int spares = 0;
  /// Of a spare: whether it may take this place, which is empty. Asked now and then.
  std::function<bool(int place)> may_take = [](int) { return true; };
  /// Where a death is the end of the job: a rank that has not moved for so long while others waited ends it, too. 0:
  /// nobody looks.
  std::chrono::nanoseconds stall_timeout{0};
  /// Ends waiting (a stop signal has come): asked while a rank waits, from any thread; must be cheap.
  std::function<bool()> interrupted = [] { return false; };
};

/// All ranks make their participants together, and call the functions of the loop in the order above, with k rising by
/// one. Everything throws CommunicationError, DivergenceError (a value that is not finite, with rank, iteration and
/// segment), and WaitInterrupted once `interrupted` is true; a rank that leaves by an exception must end the job
/// (mpi::Environment::abort), for others may wait for it.
///
/// Asynchronous ranks end at different times. A rank that has made its own iterations goes on serving the others inside
/// of `settle`, until all of them are there.
class Participant {
 public:
  /// The ranks of a communicator, which is duplicated. `plan` is used here only; `replica` must outlive the
  /// participant.
  Participant(mpi::CommunicatorHandle ranks, std::shared_ptr<const Topology> topology, const ExchangePlan& plan,
              Parameters& replica, ParticipantOptions options = {});
  /// Over any transport.
  Participant(std::unique_ptr<Transport> transport, std::shared_ptr<const Topology> topology, const ExchangePlan& plan,
              Parameters& replica, ParticipantOptions options = {});
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  /// Whether this process has no place yet. It has no exchange then, and no neighbours.
  bool is_spare() const { return exchange_ == nullptr; }
  /// Of a spare, in place of the loop: waits until a rank has died whose place is for it to take, and for the model of
  /// one of the neighbours there. True: x is that model, the loop begins with k = 0, and edges mix when both of their
  /// ends know each other's model. False: the job is over without it (others have left, or nobody lives), or
  /// interrupted. `plan`: the participant's.
  bool take_over(const ExchangePlan& plan);
  /// When a spare has taken a place and a model, and when its first edge has mixed (nothing before), on the ledger's
  /// clock since the ranks started together.
  double joined_at_s() const { return joined_at_s_; }
  std::optional<double> mixes_since_s() const { return mixes_since_s_; }

  // The loop: see runtime/exchange/exchange.hpp.
  void start(Iteration k);
  void gradient_ready(SegmentId segment);
  /// The η of the next step, of all segments; the rest of what a step is stays. Before `finish`, in every iteration in
  /// which it changes; only exchanges that measure steps ask. Throws ConfigError unless it is a number ≥ 0.
  void learning_rate(double eta);
  /// Where segments have rates, or more, of their own: (segments) what the next step makes of a gradient.
  void steps(std::span<const StepResponse> steps);
  /// Throws ConfigError if the exchange measures steps, and the rate of a segment has never been told.
  void finish(Iteration k);
  void stepped(Iteration k);
  /// Whether ranks are servers of a part each.
  bool is_sharded() const { return sharded_; }
  /// Whether `gradient_ready` is to be called at all.
  bool layer_wise() const { return exchange_->layer_wise(); }
  /// Every gradient is ready: for loops that do not know when each of them was.
  void all_gradients_ready();

  /// How far the job is, as far as this rank knows, in iterations of all ranks: batches that any of them has begun over
  /// their number. In lockstep k, which this rank is at.
  double job_iterations(Iteration k) const;
  /// Batches that a process has begun, as far as this one knows; in lockstep 0.
  std::uint64_t batches_of(int rank) const { return count_ ? count_->of(rank) : 0; }
  /// In place of an iteration where this rank has nothing to compute and others have: it goes on sending, mixing and
  /// serving. True where the gradient holds something for the optimizer now: its step and `stepped` follow.
  bool idle(Iteration k) {
    follow_changes();
    return exchange_->idle(k);
  }
  /// What moves x by the gradient, for a rank that serves behind its own iterations: the optimizer's step. Without it
  /// x ← x − η g, η being the last `learning_rate` or that of the options; ConfigError where neither is known, or where
  /// the options speak of another optimizer.
  void optimizer(std::function<void()> step) { optimizer_ = std::move(step); }
  /// Behind this rank's own iterations: one of `idle` after the other, as long ones as its own were, while
  /// `others_work`.
  void accompany(const std::function<bool()>& others_work);
  /// Asynchronous: accompanies the others until all have come here equally often. In lockstep, and where ranks may die,
  /// it returns at once. Throws CommunicationError where a rank has left that did not come.
  void await_all();

  /// Training is over on this rank (Exchange::end); before the last `settle`, on all ranks that take part in that.
  void end();
  /// Waits until everything posted has been sent; what was for a dead neighbour counts as sent.
  void flush();
  /// After the last iteration: everything that any rank has posted has arrived and is taken in. Collective: no rank
  /// returns while another may still need it. It accompanies the others (`await_all`) first; where ranks are servers of
  /// a part each, all that was pushed is applied, and x is the servers' model on all of them. All ranks throw the same
  /// DivergenceError where one has a value that is not finite (`require_finite`).
  /// `barrier`: of those who take part, where not all ranks do; it may call MPI. Nobody is accompanied then, and a rank
  /// throws DivergenceError for its own values.
  void settle(const std::function<void()>& barrier = {});
  /// The model of n floats that the ranks serve, a part each: what a rank holds of other parts may be a little older.
  /// Collective; only where ranks are servers (`is_sharded`).
  std::vector<float> servers_model();
  /// Throws DivergenceError if a value of x, or of what the exchange keeps (residual, momentum, …), is not finite on
  /// any rank: on all of them the same, naming the first rank and its iteration, or between which two it has come.
  /// Collective, but where ranks may die. One pass over all of it.
  void require_finite();
  /// The same of what this rank has come upon on its way: nothing is looked at, nobody is asked. After every `stepped`
  /// it is cheap; a model of up to FiniteWatch::piece values is looked at whole in every iteration.
  void require_finite_so_far() const;
  /// All that this rank's end of the job knows beside x, between two iterations (base/state/archive.hpp). Where ranks
  /// are asynchronous, all of them have settled before. It waits until what this rank has posted has been sent, and for
  /// no other rank. To load: into a participant that has not started, made alike on all ranks, before any of them
  /// starts the next iteration.
  void state(Archive& archive);
  /// In place of a state: the next iteration is k, as if all ranks had done k and remembered nothing but x, which is
  /// the same on all of them. `owed`, of n floats, is what the ranks of the job before owed together
  /// (Exchange::add_residual), or empty. `plan`: the participant's. All ranks together.
  void begin_at(Iteration k, const ExchangePlan& plan, std::span<const float> owed);
  /// Who is alive, and who works where; null unless ranks go on without the dead. What a rank has just learnt, the
  /// exchange is told before the next iteration.
  FailureDetector* failures() { return failures_.get(); }
  /// The job is done: a rank may stand still from now on (`stall_timeout`).
  void rest() {
    if (pulse_) pulse_->rest();
  }
  /// Ends the exchange and the communication of this rank; what is counted stays.
  void leave();

  /// Messages, bytes by kind, what was deferred: sent by this rank so far.
  LedgerTotals counts() const { return ledger_.totals(); }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  const Exchange& exchange() const { return *exchange_; }
  const Topology& topology() const { return *topology_; }
  const Neighbourhood& neighbourhood() const { return neighbourhood_; }
  Parameters& replica() { return replica_; }
  /// Its place in the graph; of a spare without one, and of processes that never die, the transport's rank.
  int rank() const { return neighbourhood_.rank; }
  /// The transport's rank.
  int process() const { return process_; }

  /// What an exchange works with: for one that is built elsewhere.
  ExchangeContext context();
  /// Runs what calls MPI where MPI may be called.
  CommunicationEngine& engine() { return *engine_; }
  /// What communication does while it waits for other ranks elsewhere: serves the mailbox, ends if interrupted.
  void serve();
  /// Serves the mailbox, whatever has come.
  bool progress();
  /// Lets `seconds` pass while communication goes on; in a simulation simulated ones.
  void pass_time(double seconds) { transport_->pass_time(seconds, *engine_); }
  /// Lets pass what `seconds` of computing take beside the jobs that were submitted before them (InlineEngine).
  void compute_for(double seconds);

  /// Bytes of the window of a rank with so many neighbours, out of so many ranks, and spares beside them. A spare's is
  /// that of a rank with most neighbours.
  static std::size_t window_bytes(const ExchangePlan& plan, const Layout& layout, std::size_t neighbours, int ranks,
                                  int spares = 0);
  /// What the rows of a failure detector, or a pulse, which lie behind that, add to it.
  static std::size_t failure_bytes(const ParticipantOptions& options, int ranks) {
    if (options.failure_timeout.count() > 0) return FailureDetector::bytes(ranks + options.spares, options.spares);
    return options.stall_timeout.count() > 0 ? Pulse::bytes : 0;
  }

 private:
  /// The other end of an edge, as the computing thread knows it.
  struct EdgeEnd {
    int process;
    bool lost = false;
    bool begins = false;  // anew
  };

  /// A value that is not finite.
  struct Finding {
    Iteration order;   // the sooner, the smaller; x before what is kept beside it
    std::string text;  // a sentence
  };

  void broadcast_replica();
  void require_rates() const;
  template <class Work>
  void in_iteration(Iteration k, const Work& work);
  void serve_once();
  void apply_gradient();
  bool all_have_stopped(std::uint64_t stops) const;
  void await_read();
  void take_in(const std::function<void()>& barrier);
  void take_from_servers();
  void uncounted(const std::function<void()>& job);
  std::optional<Finding> own_finding();
  std::optional<Finding> finding_of_all(const std::optional<Finding>& own);
  std::string sentence(const NotFinite& found) const;
  std::unique_ptr<FailureDetector> make_failure_detector(const ExchangePlan& plan);
  std::unique_ptr<Pulse> make_pulse(const ExchangePlan& plan);
  std::vector<std::size_t> places_behind_mailboxes(const ExchangePlan& plan) const;
  void drop_dead();
  void follow_changes();
  void lose_dead();
  void lose_edge(std::size_t edge);
  void attach(std::size_t edge, int process);
  bool admit_edges();
  void weigh();
  void stand_at(int place);
  bool over() const;
  std::optional<std::span<const std::byte>> first_model() const;

  std::unique_ptr<Transport> transport_;
  std::shared_ptr<const Topology> topology_;
  const int process_;
  Neighbourhood whole_neighbourhood_;  // with the weights that it has while all live
  Neighbourhood neighbourhood_;
  Parameters& replica_;
  ParticipantOptions options_;
  const Places places_;
  const bool sharded_, measures_steps_;
  std::vector<StepResponse> steps_;  // (segments)
  Ledger ledger_;
  bool counts_messages_ = true;  // the communication thread's
  Peers& peers_;
  RemoteMemory* memory_;
  std::shared_ptr<void> memory_pin_;  // null: no device reads it by itself
  Mailbox mailbox_;
  std::unique_ptr<JobCount> count_;            // asynchronous ranks only
  std::unique_ptr<FailureDetector> failures_;  // null: nobody may die
  std::unique_ptr<Pulse> pulse_;               // null: nobody looks, or `failures_` does
  std::vector<int> attached_{};                // who is at the other ends of the edges; the communication thread's
  int dropped_ = 0;                            // deaths that communication knows; its thread's
  std::vector<EdgeEnd> ends_{};                // the same, and what follows, of the computing thread
  int followed_ = 0;                           // of FailureDetector::changes
  int lost_ = 0;                               // deaths that the exchange knows
  double joined_at_s_ = 0.0;
  std::optional<double> mixes_since_s_{};
  FiniteWatch watch_;
  std::optional<NotFinite> found_{};  // by it, first
  std::function<void()> optimizer_{};
  Iteration now_ = 0;            // the caller's iteration
  Iteration last_stepped_ = -1;  // the same
  Iteration next_ = 0;           // of the exchange: the caller's, and those in which this rank has only served
  Iteration served_ = 0;         // ... which are so many
  std::optional<std::chrono::nanoseconds> began_{};  // the first iteration
  Iteration begun_ = 0;                              // iterations since
  std::unique_ptr<CommunicationEngine> engine_;      // joins its thread before anything above goes
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace hearsay
