#pragma once
// The ranks of a job that are still alive, where it goes on without the dead (train.on_failure: continue).
//
// Training itself knows no collective operation. What comes after it, evaluation and reports, has many, and each would
// wait for ever for a rank that dies meanwhile. So they are done among those who are alive, as one attempt: whoever
// hears of another death gives the attempt up, and all begin it again without that rank, or with one more where a spare
// has just replaced a dead one. An attempt is known by who takes part and who is dead, which never comes again. It has
// succeeded when the rank that writes the summary says that it leaves. A Python loop, which goes on training after an
// evaluation, makes its attempts by itself (python/core/together.hpp).
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/report/report.hpp"
#include "runtime/transport/communicator.hpp"

namespace hearsay {

/// Thrown out of an operation among the living, because one of them has died or has left, or one more takes part.
class RankDied : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

class Survivors {
 public:
  /// Both must outlive it. `communicator`: what the operations go through; its `idle` calls `require_all_alive`.
  /// `founders`: processes that have started together, without whom there is no beginning. `counts`: whether one that
  /// takes part in training is in these operations, too; once true, it stays so. Any thread.
  Survivors(
      Participant& participant, Communicator& communicator, int founders,
      std::function<bool(int process)> counts = [](int) { return true; })
      : participant_(participant), communicator_(communicator), founders_(founders), counts_(std::move(counts)) {}

  /// Whether ranks may die without the job.
  bool may_die() const { return participant_.members().failures() != nullptr; }
  /// On the communication thread, now and then in every wait. Throws RankDied if somebody has died since the attempt
  /// began.
  void require_all_alive() const;
  /// On the communication thread: who has died until now is missed by no operation that follows.
  void forget_the_dead();
  /// Who takes part in an attempt, and the number that it is known by.
  struct Attempt {
    std::vector<int> members;
    std::uint64_t number;
  };
  /// From now on operations are among those who are alive and take part.
  Attempt begin_attempt();
  /// Does `attempt` until it succeeds, each time among those who are alive. False: it has been done without this rank,
  /// which need not do anything any more.
  bool attempt_together(const std::function<void()>& attempt);
  /// Within an attempt: `work` among those of its members that `takes_part` is true of, which all of them know alike.
  void among(const std::function<bool(int process)>& takes_part, const std::function<void()>& work);
  /// Says that this rank leaves, and returns when the others have been told.
  void leave();

  /// Whether this rank writes what one rank writes: rank 0, or the first process that lives and takes part.
  bool reports() const;
  /// On the ledger's clock, when the run's clock began, which shows `seconds` now.
  double began_s(double seconds) const;
  /// Who has died, as far as this rank knows, and who has come; when, is by the run's clock, which began at `began_s`.
  std::vector<LostRank> lost(double began_s) const;
  std::vector<JoinedRank> joined(double began_s) const;
  /// Ranks whose vertex nobody has who has a model, ascending.
  std::vector<int> missing() const;
  /// Whether a spare lives that has no vertex, and one is empty that it cannot take: no neighbour there lives.
  bool left_waiting() const;
  /// Into how many parts the graph has fallen without the dead, and that in words; empty where it is in one.
  int parts() const;
  std::string parts_text() const;

 private:
  Participant& participant_;
  Communicator& communicator_;
  std::vector<int> participants() const;
  int changes() const;
  bool somebody_has_left() const;
  void require_founders() const;

  const int founders_;
  const std::function<bool(int process)> counts_;
  std::atomic<bool> begun_{false};     // the first attempt
  mutable std::atomic<int> known_{0};  // what has changed that is of no account
  std::atomic<std::uint64_t> attempt_{0};
  std::atomic<std::size_t> forgotten_{0};                      // of the dead, before the first attempt
  std::vector<int> members_{};                                 // of the attempt
  mutable std::optional<std::chrono::nanoseconds> left_at_{};  // when one of them was first known to have left
};

}  // namespace hearsay
