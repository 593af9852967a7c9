// The job's count is never more than what was begun, and all ranks know all of it in the end.
#include <doctest/doctest.h>

#include "base/random.hpp"
#include "runtime/transport/job_count.hpp"
#include "tests/support/local_memory.hpp"
#include "topology/topology.hpp"

namespace hearsay::job_count_test {
namespace {

using namespace test;

constexpr std::size_t ring_bytes = 128;  // mailboxes lie before the counts

Topology graph(const std::string& name, int ranks) {
  Config root = Config::from_text("topology: {graph: {name: " + name + "}, weights: {name: metropolis}}");
  Config section = root.section("topology");
  const TopologyPlan plan(section);
  root.document().throw_if_invalid();
  return plan.build(ranks);
}

std::chrono::nanoseconds now{};  // what the ledgers take for the time

/// All ranks of a job, on one thread.
struct Job {
  explicit Job(const Topology& topology) : sizes(bytes(topology)), blocks(sizes) {
    for (int r = 0; r < topology.ranks(); ++r) {
      memories.push_back(std::make_unique<LocalMemory>(blocks, r));
      ledgers.push_back(std::make_unique<Ledger>(topology.neighbourhood(r).neighbours.size(), 1, [] { return now; }));
      counts.push_back(std::make_unique<JobCount>(*memories.back(), topology, r, ring_bytes, *ledgers.back()));
    }
  }
  static std::vector<std::size_t> bytes(const Topology& topology) {
    std::vector<std::size_t> all;
    for (int r = 0; r < topology.ranks(); ++r) {
      const std::size_t degree = topology.neighbourhood(r).neighbours.size();
      const MailboxMap mailbox{.degree = static_cast<int>(degree), .capacity_bytes = ring_bytes};
      all.push_back(mailbox.total_bytes() + JobCount::bytes(degree, topology.ranks()));
    }
    return all;
  }
  std::vector<std::size_t> sizes;
  LocalBlocks blocks;
  std::vector<std::unique_ptr<LocalMemory>> memories;
  std::vector<std::unique_ptr<Ledger>> ledgers;
  std::vector<std::unique_ptr<JobCount>> counts;
};

TEST_CASE("what a rank knows never exceeds what was begun, and is all of it some milliseconds later") {
  for (const std::string name : {"ring", "star", "complete", "path"}) {
    for (const int ranks : {1, 2, 5, 8}) {
      if (name != "complete" && ranks == 1) continue;
      CAPTURE(name);
      CAPTURE(ranks);
      const Topology topology = graph(name, ranks);
      Job job(topology);
      Random random(4);
      std::vector<std::uint64_t> begun(static_cast<std::size_t>(ranks));
      std::uint64_t total = 0;
      for (int step = 0; step < 2000; ++step) {
        const auto r = static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(ranks)));
        if (random.uniform() < 0.3) {
          job.counts[r]->begin_batch();
          ++begun[r], ++total;
        }
        job.counts[r]->progress();
        for (int other = 0; other < ranks; ++other) {
          REQUIRE(job.counts[r]->of(other) <= begun[static_cast<std::size_t>(other)]);
        }
      }
      for (int edge = 0; edge < ranks; ++edge) {  // as many as the graph may be wide
        for (int look = 0; look < 2 * ranks; ++look)
          for (auto& count : job.counts) count->progress();
        now += JobCount::relay_after;
      }
      for (const auto& count : job.counts) CHECK(count->total() == total);
    }
  }
}

TEST_CASE("a word that is half put is not believed") {
  const Topology topology = graph("ring", 2);
  Job job(topology);
  const std::size_t first = job.sizes[0] - JobCount::bytes(1, 2);
  for (const std::uint64_t torn : {std::uint64_t{0}, std::uint64_t{5}, ~std::uint64_t{0}, std::uint64_t{7} << 32}) {
    job.memories[1]->store(torn, 0, first + sizeof torn);
    job.counts[0]->progress();
    CHECK(job.counts[0]->total() == 0);
  }
  job.counts[1]->begin_batch();
  job.counts[1]->progress();
  job.counts[0]->progress();
  CHECK(job.counts[0]->of(1) == 1);
}

}  // namespace
}  // namespace hearsay::job_count_test
