#pragma once
// Where every rank is: a rank that waits for one that calls something else, or has gone on, would wait for ever.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay::python {

/// This rank waits for one that does not come.
struct RankLeft : CommunicationError {
  using CommunicationError::CommunicationError;
};

/// What all ranks do together, and the step that a rank may be in instead.
enum class Call : std::uint8_t {
  none,
  step,
  join,
  evaluate,
  averaged,
  end,
  summary,
  state_dict,
  load_state_dict,
  leave,
  decision,
  program_end,
};

/// "member.evaluate()" and so on, as in the Python program. Throws std::logic_error for a name that is none of them.
Call call_named(std::string_view name);
std::string name_of(Call call);
/// Whether most loops make it once, after the last step.
bool is_last(Call call);

/// Where a rank is.
struct Presence {
  Call call = Call::none;
  int member = 0;          ///< that is called: 0, 1 … in the order in which this process has joined
  std::int64_t steps = 0;  ///< that it has made
};

/// Collective, before anything else: returns when every rank is in its first `hearsay.join()`. `idle` runs while this
/// rank waits, and may throw. Tells within seconds which ranks are not there; throws RankLeft where one has ended its
/// program (`tell_of_end`).
void assemble(Job& job, const std::function<void()>& idle);
/// This rank will not come to `assemble`. Waits for nobody.
void tell_of_end(Job& job);

/// While a rank tells the others something: `idle` runs now and then, and may throw; nobody waits for who `is_dead`.
struct Waiting {
  std::function<void()> idle = [] {};
  std::function<bool(int rank)> is_dead = [](int) { return false; };
};

/// Two words a rank, in a window of its own: the collective call that the rank is in, and how many calls it has agreed
/// that they are done. Every rank has a copy of all words. The ranks of a job share one object, over all members that
/// they make. Communicates, but for what says something else.
class Meetings {
 public:
  /// How far the ranks are together.
  struct Progress {
    std::uint64_t calls = 0;     ///< that they have agreed on
    std::uint64_t meetings = 0;  ///< until then
  };

  /// Collective. Those who have started together meet, until `keep` says otherwise.
  explicit Meetings(const Job& job);

  /// From now on only these ranks meet, ascending: the others are dead. The call that has not been agreed on begins
  /// again. `attempt`: as in Communicator::keep.
  void keep(std::vector<int> ranks, std::uint64_t attempt);
  /// This rank has left the call that it has begun, by an exception: what it enters now is the next one.
  void give_up() { begun_ = false; }
  /// This rank enters a call, or is in a step and will not enter what others are in. Does not wait for others to come.
  void come(Presence here, const Waiting& waiting = {});
  /// Between two calls. Any thread; it only reads memory.
  Progress progress() const { return {.calls = agreed_, .meetings = met_}; }
  /// This rank has come later, and is as far as the others.
  void take_up(const Progress& progress);
  /// Collective, after `come`: returns when every rank is in the same call of the same member; throws RankLeft where
  /// that cannot be. `idle` runs while this rank waits; it looks at `contradiction` and throws, too.
  void meet(std::function<void()> idle);
  /// Collective: all who meet have done what they have met for, and nobody begins that again. `idle` runs in the
  /// barrier; `waiting` is for telling the others.
  void agree(const Waiting& waiting, std::function<void()> idle);
  /// Whether another rank has agreed on more calls than this one. Any thread; it only reads memory.
  bool others_have_agreed() const;
  /// Then: this rank does so, too, without a barrier.
  void agree_after_others(const Waiting& waiting);
  /// Which rank cannot come, and where it is instead: a sentence with the remedy. Nothing while all may merely be slow.
  /// Any thread; it only reads memory.
  /// `step`: this rank waits in a step, for ranks that step with it; otherwise it waits in `meet`.
  std::optional<std::string> contradiction(const std::optional<Presence>& step = {}) const;
  /// The ranks that have not come to where this one is, "1, 2"; some may merely be slow.
  std::string missing() const;
  /// Members of this process so far; numbers the next one.
  int next_member() { return members_++ % 256; }

 private:
  struct Word;
  struct Agreement;
  Agreement newest_agreement() const;
  Word word_of(int rank) const;
  std::uint64_t load(std::size_t at) const;
  void tell(std::uint64_t word, std::size_t at, const std::vector<int>& ranks, const Waiting& waiting);

  std::function<void()> idle_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Transport> transport_;
  RemoteMemory& words_;
  std::vector<int> everybody_;       // those included who may come later
  std::vector<int> ranks_;           // that meet
  std::vector<std::uint64_t> told_;  // to each rank: must stay until it has arrived
  const std::size_t own_;
  std::uint64_t met_ = 0;
  std::uint64_t agreed_ = 0;      // calls
  std::uint64_t met_before_ = 0;  // the call that has begun
  bool begun_ = false;
  int members_ = 0;
};

}  // namespace hearsay::python
