// Processes that are killed: the others notice, nobody hangs, nothing is left.
#include <doctest/doctest.h>

#include "runtime/sockets/job.hpp"
#include "runtime/sockets/transport.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "tests/runtime/sockets/processes.hpp"

namespace hearsay::death_test {
namespace {

using namespace test;
using Shared = std::shared_ptr<sockets::Network>;

constexpr int victim = 1;

/// Trains until somebody is gone, which ends the job or is known to the others; the victim is killed on its way.
std::string train_until_a_death(const std::string& yaml, const ParticipantOptions& options, const Shared& network) {
  const ParticipantPlan plan(Config::from_text(yaml));
  const reference::Quadratic problem(reference::small_layout(), network->ranks(), 7);
  Parameters replica(reference::small_layout());
  Participant member(std::make_unique<sockets::Transport>(network), plan.topology(network->ranks()), plan.exchange(),
                     replica, options);
  RankTrainer trainer(member, problem, {.learning_rate = 0.1});
  for (Iteration k = 0; member.members().failures() == nullptr || member.members().failures()->alive(victim); ++k) {
    if (k == 50 && network->rank() == victim) ::raise(SIGKILL);
    trainer.start(k);
    trainer.finish(k);
  }
  return "goes on";
}

void check_others_end(const MeetingPlan& plan, const std::vector<Ending>& endings) {
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const Ending& ending = endings[static_cast<std::size_t>(rank)];
    CAPTURE(rank);
    CAPTURE(ending.error);
    if (rank == victim) {
      CHECK(ending.signal == SIGKILL);
      continue;
    }
    CHECK(ending.exit_code == static_cast<int>(ExitCode::communication));
    CHECK(ending.error.find("is gone") != std::string::npos);
  }
}

TEST_CASE("in lockstep a process that is killed ends the job, with a sentence, at once") {
  for (const MeetingPlan& plan : {on_one_host(2), on_one_host(4), on_two_hosts(4), all_apart(3)})
    for (const char* name : {"dpsgd", "eventgrad", "allreduce", "gtopk"}) {
      CAPTURE(name);
      const auto began = std::chrono::steady_clock::now();
      const auto endings = run_processes(plan, [&](const Shared& network) {
        return train_until_a_death("exchange: {name: " + std::string(name) + "}\n", {.step = {.learning_rate = 0.1}},
                                   network);
      });
      check_others_end(plan, endings);
      CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
    }
}

TEST_CASE("a rank that leaves by an exception is a death to the others, one that leaves too early is, too") {
  for (const MeetingPlan& plan : {on_one_host(3), on_two_hosts(3)}) {
    const auto endings = run_processes(plan, [&](const Shared& network) -> std::string {
      sockets::Transport transport(network);
      if (network->rank() == victim) throw DataError("no data");
      transport.barrier();
      return "barrier";
    });
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Ending& ending = endings[static_cast<std::size_t>(rank)];
      CAPTURE(ending.error);
      CHECK(ending.exit_code == static_cast<int>(rank == victim ? ExitCode::data : ExitCode::communication));
    }
    const auto early = run_processes(plan, [&](const Shared& network) -> std::string {
      if (network->rank() == victim) return "left";
      sockets::Transport transport(network);
      transport.barrier();
      return "barrier";
    });
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Ending& ending = early[static_cast<std::size_t>(rank)];
      CAPTURE(ending.error);
      CHECK(ending.exit_code == static_cast<int>(rank == victim ? ExitCode::done : ExitCode::communication));
    }
  }
}

TEST_CASE("where others go on, they do: a death is known to all, and nobody hangs") {
  for (const MeetingPlan& plan : {on_one_host(4), on_two_hosts(4)}) {
    const auto endings = run_processes(plan, [&](const Shared& network) {
      return train_until_a_death("exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\n",
                                 {.step = {.learning_rate = 0.1}, .failure_timeout = std::chrono::seconds(2)}, network);
    });
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Ending& ending = endings[static_cast<std::size_t>(rank)];
      CAPTURE(rank);
      CAPTURE(ending.error);
      if (rank == victim)
        CHECK(ending.signal == SIGKILL);
      else
        CHECK(ending.said == "goes on");
    }
  }
}

// The others train on, in a wait or between two of them, also those who would go on without the dead.
TEST_CASE("a rank that ends the job ends all of it, with its exit code, whatever a death does") {
  for (const MeetingPlan& plan : {on_one_host(4), on_two_hosts(4)})
    for (const auto longest : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(std::chrono::minutes(2))}) {
      const auto endings = run_processes(plan, [&](const Shared& network) -> std::string {
        const sockets::Job job(network);
        const ParticipantPlan chosen(
            Config::from_text("exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\n"));
        const reference::Quadratic problem(reference::small_layout(), network->ranks(), 7);
        Parameters replica(reference::small_layout());
        Participant member(job.transport(), chosen.topology(network->ranks()), chosen.exchange(), replica,
                           {.step = {.learning_rate = 0.1}, .failure_timeout = longest});
        RankTrainer trainer(member, problem, {.learning_rate = 0.1});
        for (Iteration k = 0;; ++k) {
          if (k == 50 && network->rank() == victim) job.abort(static_cast<int>(ExitCode::diverged));
          trainer.start(k);
          trainer.finish(k);
        }
      });
      for (const Ending& ending : endings) {
        CAPTURE(ending.error);
        CHECK(ending.exit_code == static_cast<int>(ExitCode::diverged));
      }
    }
}

}  // namespace
}  // namespace hearsay::death_test
