#pragma once
// Whether a rank's numbers are numbers: those of x and those that its exchange keeps. Where one is not, all ranks throw
// the same DivergenceError, which names the first rank and its iteration.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/membership/communication.hpp"
#include "runtime/replica/finite_watch.hpp"

namespace hearsay {

class FiniteCheck {
 public:
  /// All of it must outlive the check. `exchange` may be null, and change.
  FiniteCheck(const Parameters& replica, const Edges& edges, Communication& communication,
              const std::unique_ptr<Exchange>& exchange)
      : replica_(replica), edges_(edges), communication_(communication), exchange_(exchange), watch_(replica) {}

  /// Throws DivergenceError if a value of x, or of what the exchange keeps (residual, momentum, …), is not finite on
  /// any rank: on all of them the same, naming the first rank and its iteration, or between which two it has come.
  /// Collective, but where ranks may die. One pass over all of it.
  void require();
  /// The same of this rank alone: nobody is asked.
  void require_here();
  /// The same of what this rank has come upon on its way: nothing is looked at. After every `stepped` it is cheap; a
  /// model of up to FiniteWatch::piece values is looked at whole in every iteration.
  void require_so_far() const;

  /// The optimizer has left x so after iteration k, and it has not come to others yet.
  void stepped(Iteration k);
  /// Does `work` of iteration k. A DivergenceError out of it names rank and iteration.
  template <class Work>
  void during(Iteration k, const Work& work) {
    try {
      work();
    } catch (const DivergenceError& error) {
      rethrow(k, error);
    }
  }

 private:
  /// A value that is not finite.
  struct Finding {
    Iteration order;   // the sooner, the smaller; x before what is kept beside it
    std::string text;  // a sentence
  };
  [[noreturn]] void rethrow(Iteration k, const DivergenceError& error) const;
  std::string sentence(const NotFinite& found) const;
  std::optional<Finding> own();
  std::optional<Finding> kept_by_exchange();
  std::optional<Finding> of_all(const std::optional<Finding>& own);

  const Parameters& replica_;
  const Edges& edges_;
  Communication& communication_;
  const std::unique_ptr<Exchange>& exchange_;
  FiniteWatch watch_;
  std::optional<NotFinite> found_{};  // by it, first
  Iteration last_stepped_ = -1;
};

}  // namespace hearsay
