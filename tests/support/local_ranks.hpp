#pragma once
// Runs a function once per rank, every rank a thread of this process with its own ledger, mailbox, peers and engine: all
// algorithms without MPI.
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

#include "runtime/exchange/exchange.hpp"
#include "tests/support/local_memory.hpp"
#include "tests/support/local_peers.hpp"

namespace hearsay::test {

enum class EngineKind { inline_engine, thread_engine };

/// What all ranks have in common.
struct LocalJob {
  const Topology& topology;
  const Layout& layout;
  std::span<const float> initial;  ///< x_0
  std::size_t packet_bound;        ///< bytes of the largest packet: sizes the rings
  EngineKind engine = EngineKind::inline_engine;
  std::vector<int> nodes{};               ///< the machine of every rank; empty: one machine
  std::optional<std::uint64_t> delays{};  ///< seed: messages between ranks are late at random
  /// Where a rank's replica lives. Its memory is to be looked at during a ComputeTurn only.
  std::function<std::shared_ptr<Device>(int rank)> device = [](int) { return processor(); };
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
        neighbourhood(job.topology.neighbourhood(rank)),
        replica(job.layout, job.device(rank)),
        ledger(neighbourhood.neighbours.size(), job.layout.count()),
        memory(shared.blocks, rank),
        mailbox(memory, job.topology, rank, MailboxMap::capacity_for(job.packet_bound), ledger),
        peers(shared.office, rank),
        shared_(shared) {
    replica.device->put(std::as_bytes(job.initial), replica.values.span());
    const auto step = [this] { return mailbox.progress(); };
    if (job.engine == EngineKind::thread_engine) {
      engine_ = std::make_unique<ThreadEngine>(step);
    } else {
      engine_ = std::make_unique<InlineEngine>(step);
    }
  }

  int rank() const { return neighbourhood.rank; }
  CommunicationEngine& engine() { return *engine_; }
  /// Waits end where another rank has failed.
  ExchangeContext context() {
    return {.neighbourhood = neighbourhood,
            .replica = replica,
            .mailbox = mailbox,
            .engine = *engine_,
            .ledger = ledger,
            .peers = peers,
            .interrupted = [this] { return shared_.failed.load(); }};
  }
  /// Waits for all ranks that have not returned or failed.
  void barrier() { shared_.everybody.arrive_and_wait(); }
  /// Everything posted is sent and counted; the engine must not be used again.
  void stop_engine() { engine_.reset(); }

  const Topology& topology;
  const Neighbourhood neighbourhood;
  Parameters replica;
  Ledger ledger;
  LocalMemory memory;
  Mailbox mailbox;
  LocalPeers peers;

 private:
  Shared shared_;
  std::unique_ptr<CommunicationEngine> engine_;  // last: it drives all of the above
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
    const std::size_t capacity = MailboxMap::capacity_for(job.packet_bound);
    std::vector<std::size_t> bytes;
    for (int r = 0; r < job.topology.ranks(); ++r) {
      const auto degree = static_cast<int>(job.topology.neighbourhood(r).neighbours.size());
      bytes.push_back(MailboxMap{.degree = degree, .capacity_bytes = capacity}.total_bytes());
    }
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
