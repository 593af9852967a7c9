#pragma once
// The places that a Python program's job holds for those who come later, and the way of one that comes.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "python/core/member.hpp"
#include "runtime/failure/beginning.hpp"
#include "runtime/job/start.hpp"

namespace hearsay::python {

/// What all processes of a job have in common: the configuration, and of the model what is trained and what is not
/// (Program::buffers). A hash.
std::string common_hash(const JobPlan& plan, const Layout& layout, const std::string& buffers);

/// Collective, before anything is opened that those who come later are to reach: lets them come. In one that has come:
/// waits until the others train, and returns where they began. Nothing where nobody may come. Throws ConfigError where
/// nobody can.
std::optional<Beginning> open_places(const Job& job, const JobPlan& plan, const std::string& common,
                                     const std::function<void()>& idle);

/// This process comes to a job of this name (runtime/job/start.hpp). Throws as join_job, and ConfigError where the
/// configuration lets nobody come.
std::unique_ptr<Job> come_to(const std::string& job, const JobPlan& plan, const std::string& common,
                             const StartOptions& options);

}  // namespace hearsay::python
