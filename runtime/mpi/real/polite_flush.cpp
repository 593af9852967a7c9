#include "runtime/mpi/real/polite_flush.hpp"

#include "runtime/mpi/check.hpp"

namespace hearsay::mpi {

void PoliteFlush::started(int target, MPI_Request put) {
  Target& state = targets_[target];
  ++state.started;
  if (put != MPI_REQUEST_NULL) state.puts.push_back(put);
}

bool PoliteFlush::is_open(int target) const {
  const auto state = targets_.find(target);
  return state != targets_.end() && state->second.flushed != state->second.started;
}

// A question that is put after bytes which have not left may overtake them.
bool PoliteFlush::flush(int target) {
  Target& state = targets_[target];
  if (state.flushed == state.started) return true;
  if (!all_left(state)) return false;
  if (state.question == MPI_REQUEST_NULL) ask(target, state);
  int answered = 0;
  check(MPI_Test(&state.question, &answered, MPI_STATUS_IGNORE), "MPI_Test");
  if (answered == 0) return false;
  if (state.asked != state.started) {  // a flush would wait for what came later
    ask(target, state);
    return false;
  }
  if (complete_ == Behind::flush) check(MPI_Win_flush(target, window_), "MPI_Win_flush");
  state.flushed = state.started;
  state.words.clear();
  return true;
}

bool PoliteFlush::all_left(Target& state) {
  while (!state.puts.empty()) {
    int left = 0;
    check(MPI_Test(&state.puts.front(), &left, MPI_STATUS_IGNORE), "MPI_Test");
    if (left == 0) return false;
    state.puts.pop_front();
  }
  return true;
}

void PoliteFlush::ask(int target, Target& state) {
  constexpr int bytes = sizeof state.answer;
  check(MPI_Rget(&state.answer, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, window_, &state.question), "MPI_Rget");
  state.asked = state.started;
}

void PoliteFlush::finish() noexcept {
  for (auto& [target, state] : targets_) {
    for (MPI_Request& put : state.puts) MPI_Wait(&put, MPI_STATUS_IGNORE);
    MPI_Wait(&state.question, MPI_STATUS_IGNORE);
  }
}

}  // namespace hearsay::mpi
