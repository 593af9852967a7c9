#pragma once
// A participant: one rank's end of the job. It owns what that takes, in the order in which one part needs another: the
// edges of its vertex, communication, the exchange. No LibTorch.
//
// The session, the benchmarks, the simulator and the tests hold one each, and so does a training loop of one's own:
// apps/examples/own_loop.cpp.
#include <functional>
#include <memory>
#include <span>

#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/finite_check.hpp"
#include "runtime/exchange/membership/communication.hpp"
#include "runtime/exchange/membership/edges.hpp"
#include "runtime/exchange/participant_options.hpp"
#include "runtime/exchange/service.hpp"
#include "runtime/exchange/spare.hpp"

namespace hearsay {

/// All ranks make their participants together, and call the functions of the loop in the order above, with k rising by
/// one. Everything throws CommunicationError, DivergenceError (a value that is not finite, with rank, iteration and
/// segment), and WaitInterrupted once `interrupted` is true; a rank that leaves by an exception must end the job
/// (Job::abort), for others may wait for it.
///
/// Asynchronous ranks end at different times. A rank that has made its own iterations goes on serving the others inside
/// of `settle`, until all of them are there.
class Participant {
 public:
  /// `transport`: Job::transport(), or another one. `plan` is used here only; `replica` must outlive the participant.
  Participant(std::unique_ptr<Transport> transport, std::shared_ptr<const Topology> topology, const ExchangePlan& plan,
              Parameters& replica, ParticipantOptions options = {});
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  // The loop: see runtime/exchange/exchange.hpp.
  void start(Iteration k);
  /// Worth calling during the backward pass where the exchange is layer-wise (Capabilities). In `finish` all are ready,
  /// whether this was called or not.
  void gradient_ready(SegmentId segment);
  /// The η of the next step, of all segments; the rest of what a step is stays. Before `finish`, in every iteration in
  /// which it changes; only exchanges that measure steps ask. Throws ConfigError unless it is a number ≥ 0.
  void learning_rate(double eta) { steps_.learning_rate(eta); }
  /// Where segments have rates, or more, of their own: (segments) what the next step makes of a gradient.
  void steps(std::span<const StepResponse> steps) { steps_.set(steps); }
  /// Throws ConfigError if the exchange measures steps, and the rate of a segment has never been told.
  void finish(Iteration k);
  void stepped(Iteration k);

  /// After the last iteration: everything that any rank has posted has arrived and is taken in. Collective: no rank
  /// returns while another may still need it. It accompanies the others (Service::await_all) first; where ranks are
  /// servers of a part each, all that was pushed is applied, and x is the servers' model on all of them. All ranks
  /// throw the same DivergenceError where one has a value that is not finite (FiniteCheck::require).
  /// `barrier`: of those who take part, where not all ranks do; it may call MPI. Nobody is accompanied then, and a rank
  /// throws DivergenceError for its own values.
  void settle(const std::function<void()>& barrier = {});
  /// All that this rank's end of the job knows beside x, between two iterations (base/state/archive.hpp). Where ranks
  /// are asynchronous, all of them have settled before. It waits until what this rank has posted has been sent, and for
  /// no other rank. To load: into a participant that has not started, made alike on all ranks, before any of them
  /// starts the next iteration.
  void state(Archive& archive);
  /// In place of a state: the next iteration is k, as if all ranks had done k and remembered nothing but x, which is
  /// the same on all of them. `owed`, of n floats, is what the ranks of the job before owed together (Residual), or
  /// empty. `plan`: the participant's. All ranks together.
  void begin_at(Iteration k, const ExchangePlan& plan, std::span<const float> owed);
  /// Ends the exchange and the communication of this rank; what is counted stays.
  void leave();

  Parameters& replica() { return replica_; }
  /// A spare has one once it has joined.
  Exchange& exchange() const { return *exchange_; }
  /// What an exchange works with: for one that is built elsewhere.
  ExchangeContext context();
  /// Who is where around this rank's vertex.
  const Edges& edges() const { return edges_; }
  /// Who takes part in the job. What a rank has just learnt of deaths, its edges hear before the next iteration.
  Members& members() const { return communication_->members(); }
  Communication& communication() const { return *communication_; }
  /// Messages, bytes and times of this rank so far.
  Ledger& ledger() const { return communication_->ledger(); }
  /// After this rank's own iterations.
  Service& service() { return service_; }
  FiniteCheck& finite() { return finite_; }
  /// Null where this process has begun with a vertex.
  Spare* spare() const { return spare_.get(); }

 private:
  void broadcast_replica();
  void follow_changes();
  bool admit_edges();
  void take_in(const std::function<void()>& barrier);

  Edges edges_;
  Parameters& replica_;
  const ParticipantOptions options_;
  StepResponses steps_;
  std::unique_ptr<Communication> communication_;
  FiniteCheck finite_;
  Service service_;
  std::unique_ptr<Spare> spare_;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace hearsay
