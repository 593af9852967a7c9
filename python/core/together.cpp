#include "python/core/together.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <stdexcept>

#include "base/error.hpp"

namespace hearsay::python {

std::optional<std::string> LoopPlace::departed() const {
  if (in_call) return meetings->contradiction();
  if (!in_step || !lockstep) return std::nullopt;
  return meetings->contradiction(presence(Call::step));
}

Together::Together(Participant& participant, Communicator& communicator, LoopPlace& place, const Newcomers& newcomers)
    : participant_(participant),
      communicator_(communicator),
      place_(place),
      meetings_(*place.meetings),
      survivors_(participant, communicator, communicator.size(),
                 [&newcomers](int process) { return newcomers.counts(process); }) {}

void Together::serve() const { participant_.communication().serve(); }

void Together::while_waiting() const {
  serve();
  survivors_.require_all_alive();
}

Waiting Together::waiting(std::function<void()> idle) const {
  const FailureDetector* const failures = participant_.members().failures();
  return {.idle = std::move(idle), .is_dead = [failures](int rank) {
            return failures != nullptr && (!failures->alive(rank) || failures->has_left(rank));
          }};
}

void Together::begin() {
  place_.in_call = false;
  if (!survivors_.may_die()) return;
  const Survivors::Attempt attempt = survivors_.begin_attempt();
  participant_.communication().run([&] { meetings_.keep(attempt.members, attempt.number); });
}

void Together::meet(Call call) {
  if (place_.in_step) throw std::runtime_error(name_of(call) + " inside a step; ask between two steps");
  place_.in_call = true;
  constexpr std::chrono::minutes patience{1};
  const TimePoint start = participant_.ledger().now();
  bool told = is_last(call);  // asynchronous ranks may be long
  const auto require_others = [this] {
    survivors_.require_all_alive();
    if (meetings_.others_have_agreed()) throw RankDied("the others have done this without this rank");
  };
  participant_.communication().run(
      [&] { meetings_.come(place_.presence(call), waiting([this] { while_waiting(); })); });
  // While states are loaded nobody sends: what comes before this rank has its own would not fit it.
  const bool serves = !place_.lockstep && call != Call::load_state_dict;
  const auto misses = [&] {
    require_others();
    return !meetings_.missing().empty();
  };
  if (serves) participant_.service().accompany(misses);
  participant_.communication().run([&] {
    meetings_.meet([&] {
      serve();
      require_others();
      if (told || participant_.ledger().now() - start < patience) return;
      told = true;
      std::fprintf(stderr, "hearsay: [rank %d] has waited a minute in %s for rank %s; every rank has to call it\n",
                   participant_.edges().rank(), name_of(call).c_str(), meetings_.missing().c_str());
    });
  });
  place_.in_call = false;
}

void Together::agree() {
  if (!survivors_.may_die()) return;
  has_worked_ = true;
  participant_.communication().run([&] { meetings_.agree(waiting([this] { serve(); }), [this] { while_waiting(); }); });
  has_worked_ = false;
}

void Together::give_up() {
  meetings_.give_up();
  has_worked_ = false;
}

bool Together::is_done() {
  bool done = false;
  participant_.communication().run([&] {
    done = meetings_.others_have_agreed();
    if (done && !has_worked_)
      throw TakenForDead("the others have done this without this rank and go on without it, and it ends");
    if (done) meetings_.agree_after_others(waiting([this] { serve(); }));
  });
  if (done) place_.in_call = has_worked_ = false;
  return done;
}

void Together::tell_of_step() {
  if (!place_.in_step) return;
  participant_.communication().run([&] { meetings_.come(place_.presence(Call::step), waiting([] {})); });
}

bool Together::same_on_all(std::optional<double> value) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  std::vector<double> most{value.value_or(none), value ? -*value : none};
  participant_.communication().run([&] { communicator_.maximum(most); });
  return most[0] == none || most[0] == -most[1];
}

void Together::broadcast(std::span<std::byte> bytes) {
  participant_.communication().run([&] { communicator_.broadcast(bytes, 0); });
}

void Together::settle() {
  if (!survivors_.may_die()) return participant_.settle();
  require_finite([this] { participant_.settle([this] { communicator_.barrier(); }); });
}

void Together::require_finite(const std::function<void()>& look) {
  if (!survivors_.may_die()) return look();
  std::exception_ptr own;
  try {
    look();
  } catch (const DivergenceError&) {
    own = std::current_exception();
  }
  std::vector<double> last{own ? participant_.edges().rank() : -1.0};
  participant_.communication().run([&] { communicator_.maximum(last); });
  if (own) std::rethrow_exception(own);
  if (last[0] >= 0)
    throw DivergenceError("rank " + std::to_string(static_cast<int>(last[0])) +
                          " has a value that is not finite, and says which");
}

void Together::leave() {
  if (survivors_.may_die()) survivors_.leave();
  participant_.leave();
}

}  // namespace hearsay::python
