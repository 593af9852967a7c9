#pragma once
// hearsay train CONFIG --continue: the same command starts a run, goes on with it after a failure, and leaves it alone
// once it has finished. So a batch system, or scripts/launch --restarts, can repeat it.
#include <string>

#include "runtime/training/run_plan.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay {

/// What rank 0 finds in a run folder.
struct EarlierPart {
  std::string run_id{};  ///< empty: there is no run
  bool finished = false;
};
/// Throws ConfigError if the folder holds a run of another configuration than the plan's.
EarlierPart find_earlier_part(const RunPlan& plan);

enum class Continuation {
  start,   ///< there is no run, or none with a complete checkpoint: begin (anew)
  resume,  ///< from its newest complete checkpoint
  finished
};
/// What is to be done about it. `found`: rank 0's. Collective; the same on all ranks.
Continuation continuation(const Job& job, const RunPlan& plan, const EarlierPart& found);

}  // namespace hearsay
