// Who is dead: whoever is silent for too long, and nobody else; all living ranks agree; a rank that was only stopped
// finds out by itself.
#include <doctest/doctest.h>

#include <memory>
#include <set>

#include "base/random.hpp"
#include "runtime/transport/failure_detector.hpp"
#include "tests/support/local_memory.hpp"

namespace hearsay {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr auto timeout = 2000ms;
std::chrono::nanoseconds now{};  // what the ledgers take for the time

/// Over TCP a put to a rank that has died, or is stopped, is never complete.
class DeafMemory final : public RemoteMemory {
 public:
  DeafMemory(LocalBlocks& blocks, int rank, const std::set<int>& deaf) : memory_(blocks, rank), deaf_(deaf) {}
  std::span<std::byte> own() override { return memory_.own(); }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    memory_.put(bytes, target, offset);
  }
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    memory_.store(word, target, offset);
  }
  bool flush(int target) override { return !deaf_.contains(target) && memory_.flush(target); }
  void sync() override { memory_.sync(); }

 private:
  LocalMemory memory_;
  const std::set<int>& deaf_;
};

/// All ranks of a job, on one thread. A rank has `rank` neighbours' worth of other things before its rows.
struct Job {
  explicit Job(int ranks) : sizes(make_sizes(ranks)), blocks(sizes) {
    for (int r = 0; r < ranks; ++r) {
      memories.push_back(std::make_unique<DeafMemory>(blocks, r, deaf));
      ledgers.push_back(std::make_unique<Ledger>(static_cast<std::size_t>(ranks), 1, [] { return now; }));
      std::vector<std::size_t> places;
      std::vector<int> slots;
      for (int other = 0; other < ranks; ++other) {
        places.push_back(before(other));
        slots.push_back(other % 2 == 0 ? other : -1);
      }
      detectors.push_back(
          std::make_unique<FailureDetector>(*memories.back(), r, places, slots, timeout, *ledgers.back()));
    }
  }
  static std::size_t before(int rank) { return 64 * static_cast<std::size_t>(rank); }
  static std::vector<std::size_t> make_sizes(int ranks) {
    std::vector<std::size_t> all;
    for (int r = 0; r < ranks; ++r) all.push_back(before(r) + FailureDetector::bytes(ranks));
    return all;
  }
  int ranks() const { return static_cast<int>(detectors.size()); }
  FailureDetector& operator[](int rank) { return *detectors[static_cast<std::size_t>(rank)]; }
  /// Time passes; all but those who are `silent` go on.
  void pass(std::chrono::nanoseconds time, const std::set<int>& silent = {}) {
    for (const auto end = now + time; now < end; now += 10ms)
      for (int r = 0; r < ranks(); ++r)
        if (!silent.contains(r)) detectors[static_cast<std::size_t>(r)]->progress();
  }

  std::vector<std::size_t> sizes;
  LocalBlocks blocks;
  std::set<int> deaf{};  // answer nobody
  std::vector<std::unique_ptr<DeafMemory>> memories;
  std::vector<std::unique_ptr<Ledger>> ledgers;
  std::vector<std::unique_ptr<FailureDetector>> detectors;
};

TEST_CASE("whoever is silent for too long is dead to all others, and nobody else is") {
  Random random(3);
  for (const int ranks : {2, 3, 8, 40, 70}) {
    CAPTURE(ranks);
    Job job(ranks);
    job.pass(5s);
    std::set<int> dead;
    while (dead.size() + 1 < static_cast<std::size_t>(ranks) && dead.size() < 5) {
      dead.insert(static_cast<int>(random.below(static_cast<std::uint64_t>(ranks))));
      job.pass(timeout * 6 / 10, dead);
      job.pass(timeout * 6 / 10, dead);
    }
    for (int r = 0; r < ranks; ++r) {
      if (dead.contains(r)) continue;
      for (int other = 0; other < ranks; ++other) REQUIRE(job[r].alive(other) == !dead.contains(other));
      REQUIRE(job[r].dead() == static_cast<int>(dead.size()));
      REQUIRE(job[r].deaths().size() == dead.size());
      REQUIRE(job[r].living().size() == static_cast<std::size_t>(ranks) - dead.size());
    }
  }
}

TEST_CASE("a rank that is silent for less than the time-out is slow, not dead") {
  Job job(4);
  job.pass(5s);
  for (int round = 0; round < 5; ++round) {
    job.pass(timeout * 8 / 10, {1});
    job.pass(100ms);
    for (int r = 0; r < 4; ++r) REQUIRE(job[r].dead() == 0);
  }
}

TEST_CASE("who does not answer keeps nobody from hearing of the others, and is told the newest when it answers again") {
  Job job(4);
  job.pass(5s);
  job.deaf = {2};
  job.pass(timeout * 7 / 10, {2});
  for (int r = 0; r < 4; ++r) REQUIRE(job[r].dead() == 0);
  job.pass(timeout * 6 / 10, {2});
  for (const int r : {0, 1, 3}) {
    REQUIRE(job[r].dead() == 1);
    REQUIRE(!job[r].alive(2));
  }
  job.pass(3 * timeout, {2});
  for (const int r : {0, 1, 3}) REQUIRE(job[r].dead() == 1);

  Job other(3);
  other.pass(5s);
  other.deaf = {1};
  other.pass(200ms);
  other[0].leave();  // while a beat to rank 1 is under way
  other.pass(200ms);
  CHECK(other[2].has_left(0));
  CHECK(!other[1].has_left(0));
  other.deaf = {};
  other.pass(20ms);
  CHECK(other[1].has_left(0));
}

TEST_CASE("a rank that was stopped for too long finds out, and takes nobody for dead") {
  Job job(4);
  job.pass(5s);
  job.pass(2 * timeout, {2});
  REQUIRE(!job[0].alive(2));
  CHECK_THROWS_AS(job.pass(1s), TakenForDead);
  CHECK(job[2].dead() == 0);
  job.pass(2 * timeout, {2});
  for (const int r : {0, 1, 3}) CHECK(job[r].dead() == 1);
}

TEST_CASE("where all are stopped together, nobody is dead") {
  Job job(5);
  job.pass(3s);
  now += 100 * timeout;
  job.pass(3s);
  for (int r = 0; r < 5; ++r) CHECK(job[r].dead() == 0);
}

TEST_CASE("who has left is missed by nobody; who was never there, either") {
  Job job(4);
  job.pass(3s, {3});
  job[1].leave();
  job.pass(200ms, {3});
  job.pass(3 * timeout, {1, 3});
  for (const int r : {0, 2}) {
    CHECK(job[r].has_left(1));
    CHECK(!job[r].has_left(0));
    CHECK(job[r].dead() == 0);
  }
}

TEST_CASE("beats are counted, whether to a neighbour or to somebody else") {
  Job job(4);
  job.pass(5 * timeout);
  const Ledger& ledger = *job.ledgers[1];
  const std::uint64_t rounds = ledger.edge(0).puts.value();
  const std::uint64_t row = FailureDetector::bytes(4) / 4;
  CHECK(rounds >= 4 * FailureDetector::beats_in_timeout);
  CHECK(rounds <= 6 * FailureDetector::beats_in_timeout);
  CHECK(ledger.edge(2).puts.value() == rounds);
  CHECK(ledger.puts_elsewhere() == rounds);  // to rank 3
  CHECK(ledger.bytes_elsewhere() == rounds * row);
  CHECK(ledger.totals().puts == 3 * rounds);
  CHECK(ledger.totals().control_bytes == 3 * rounds * row);
}

}  // namespace
}  // namespace hearsay
