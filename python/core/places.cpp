#include "python/core/places.hpp"

#include <span>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace hearsay::python {

std::string common_hash(const JobPlan& plan, const Layout& layout, const std::string& buffers) {
  const std::string text = plan.yaml + '\0' + text_of(layout) + '\0' + buffers;
  return hexadecimal(xxh3(std::as_bytes(std::span(text))));
}

std::optional<Beginning> open_places(const Job& job, const JobPlan& plan, const std::string& common,
                                     const std::function<void()>& idle) {
  const OnFailure& members = plan.on_failure;
  if (members.joins == 0) return std::nullopt;
  LateMembers* const late = job.late_members();
  if (late == nullptr)
    throw ConfigError(
        "train.joins: others can join a job that is started without MPI, on two ranks or more: `python3 -m hearsay "
        "launch --without-mpi --recover -n P …`, torchrun, or a shell loop with HEARSAY_RANK and HEARSAY_RANKS");
  late->open_places(job.ranks() + members.vacant, members.joins, common);
  if (!late->is_late()) return std::nullopt;
  return Beginning::unpacked(late->await_welcome(idle));
}

std::unique_ptr<Job> come_to(const std::string& job, const JobPlan& plan, const std::string& common,
                             const StartOptions& options) {
  if (plan.on_failure.joins == 0)
    throw ConfigError("job=" + job +
                      ": a job that others may join has train.joins in its configuration, and on_failure: continue");
  return join_job(job, common, options);
}

}  // namespace hearsay::python
