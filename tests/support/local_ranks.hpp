#pragma once
// Runs a function once per rank, every rank a participant on a thread of this process: all algorithms without MPI.
#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/exchange/participant.hpp"
#include "tests/support/local_transport.hpp"

namespace hearsay::test {

/// An exchange that does nothing, for tests that post packets themselves. `in_flight`: what rings are sized for.
class IdlePlan final : public ExchangePlan {
 public:
  explicit IdlePlan(std::size_t packet_bound, std::optional<std::size_t> in_flight = {})
      : packet_bound_(packet_bound), in_flight_(in_flight) {}
  std::size_t packet_bound(const Layout&, int) const override { return packet_bound_; }
  std::unique_ptr<Exchange> build(const ExchangeContext&) const override {
    struct Idle final : Exchange {
      void start(Iteration) override {}
      void finish(Iteration) override {}
    };
    return std::make_unique<Idle>();
  }
  std::size_t kept_bytes(const Layout&, std::size_t, int) const override { return 0; }
  Schedule schedule() const override { return Schedule::asynchronous; }
  std::optional<std::size_t> in_flight() const override { return in_flight_; }
  bool runs_on_gpus() const override { return true; }
  ExchangeLaws laws() const override { return {.along_graph = true}; }

 private:
  std::size_t packet_bound_;
  std::optional<std::size_t> in_flight_;
};

/// What all ranks have in common.
struct LocalJob {
  const Topology& topology;
  const Layout& layout;
  std::span<const float> initial;  ///< x_0
  const ExchangePlan& plan;        ///< of every rank's participant
  EngineKind engine = EngineKind::inline_engine;
  std::vector<int> nodes{};               ///< the machine of every rank; empty: one machine
  std::optional<std::uint64_t> delays{};  ///< seed: messages between ranks are late at random
  /// Where a rank's replica lives. Its memory is to be looked at during a ComputeSlice only.
  std::function<std::shared_ptr<Device>(int rank)> device = [](int) { return processor(); };
  Iteration iterations_per_epoch = 1;
  StepResponse step{.learning_rate = 1.0};  ///< what the participants are told of the optimizer
};

/// One rank, as the function that runs on it sees it.
class LocalRank {
 public:
  /// Shared by the ranks of a job.
  struct Shared {
    LocalBlocks& blocks;
    std::barrier<>& everybody;
    const std::atomic<bool>& failed;
    PostOffice& office;
  };

  LocalRank(const LocalJob& job, int rank, Shared shared)
      : topology(job.topology),
        replica(started(job, rank)),
        member(std::make_unique<LocalTransport>(shared.blocks, shared.office, shared.everybody, rank, job.engine),
               std::shared_ptr<const Topology>(&job.topology, [](const Topology*) {}), job.plan, replica,
               {.iterations_per_epoch = job.iterations_per_epoch,
                .step = job.step,
                .start_from_rank_0 = false,
                .interrupted = [&failed = shared.failed] { return failed.load(); }}),
        ledger(member.ledger()),
        mailbox(member.context().mailbox),
        shared_(shared) {}

  int rank() const { return member.edges().rank(); }
  CommunicationEngine& engine() { return member.communication().engine(); }
  /// For what tests build themselves. Waits end where another rank has failed.
  ExchangeContext context() { return member.context(); }
  /// Waits for all ranks that have not returned or failed.
  void barrier() { shared_.everybody.arrive_and_wait(); }

  const Topology& topology;
  Parameters replica;
  Participant member;
  Ledger& ledger;
  Mailbox& mailbox;

 private:
  static Parameters started(const LocalJob& job, int rank) {
    Parameters replica(job.layout, job.device(rank));
    replica.device->put(std::as_bytes(job.initial), replica.values.span());
    return replica;
  }

  Shared shared_;
};

/// The memories of a job and what its ranks share.
class LocalWorld {
 public:
  explicit LocalWorld(const LocalJob& job)
      : job_(job),
        blocks_(sizes(job)),
        everybody_(job.topology.ranks()),
        office_(job.topology.ranks(), job.nodes, job.delays) {}

  std::unique_ptr<LocalRank> make_rank(int rank) {
    return std::make_unique<LocalRank>(
        job_, rank,
        LocalRank::Shared{.blocks = blocks_, .everybody = everybody_, .failed = failed_, .office = office_});
  }
  /// Runs `body` on rank `rank`, on the calling thread; remembers what is thrown.
  void run(int rank, const std::function<void(LocalRank&)>& body) {
    try {
      body(*make_rank(rank));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_failure_) first_failure_ = std::current_exception(), failed_rank_ = rank;
      failed_ = true;
      office_.fail();
    }
    everybody_.arrive_and_drop();
  }
  PostOffice& office() { return office_; }
  /// The rank that threw first; −1: none has.
  int failed_rank() const { return failed_rank_; }
  /// Throws what was thrown first.
  void rethrow() const {
    if (first_failure_) std::rethrow_exception(first_failure_);
  }

 private:
  static std::vector<std::size_t> sizes(const LocalJob& job) {
    std::vector<std::size_t> bytes;
    for (int r = 0; r < job.topology.ranks(); ++r)
      bytes.push_back(
          window_bytes(job.plan, job.layout, job.topology.neighbourhood(r).neighbours.size(), job.topology.ranks()));
    return bytes;
  }

  const LocalJob& job_;
  LocalBlocks blocks_;
  std::barrier<> everybody_;
  PostOffice office_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr first_failure_;
  int failed_rank_ = -1;
};

/// Runs `body` on every rank at once and rethrows what was thrown first; the other ranks' waits are then interrupted.
inline void run_local_ranks(const LocalJob& job, const std::function<void(LocalRank&)>& body) {
  LocalWorld world(job);
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < job.topology.ranks(); ++r) threads.emplace_back([&, r] { world.run(r, body); });
  }
  world.rethrow();
}

}  // namespace hearsay::test
