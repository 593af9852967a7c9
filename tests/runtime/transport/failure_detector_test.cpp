// Who is dead: whoever is silent for too long, and nobody else; all living ranks agree; a rank that was only stopped
// finds out by itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "runtime/transport/failure_detector.hpp"
#include "tests/support/local_memory.hpp"

namespace hearsay::failure_detector_test {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr auto timeout = 2000ms;
std::chrono::nanoseconds now{};  // what the ledgers take for the time, which passes while they look

/// Over TCP a put to a rank that has died, or is stopped, is never complete; and no short put leaves before somebody
/// asks whether it has arrived.
class DeafMemory final : public RemoteMemory {
 public:
  DeafMemory(LocalBlocks& blocks, int rank, const std::set<int>& deaf, const bool& keeps_back)
      : memory_(blocks, rank), deaf_(deaf), keeps_back_(keeps_back) {}
  std::span<std::byte> own() override { return memory_.own(); }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    if (keeps_back_)
      kept_.push_back({.bytes = bytes, .target = target, .offset = offset});
    else
      memory_.put(bytes, target, offset);
  }
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    memory_.store(word, target, offset);
  }
  bool flush(int target) override {
    if (deaf_.contains(target)) return false;
    for (const Put& put : kept_)
      if (put.target == target) memory_.put(put.bytes, target, put.offset);
    std::erase_if(kept_, [target](const Put& put) { return put.target == target; });
    return memory_.flush(target);
  }
  void sync() override { memory_.sync(); }
  std::vector<int> gone() const override { return ended; }
  bool is_open(int target) const override { return !closed.contains(target); }
  /// The oldest of what was kept back for `target` arrives, and nothing else.
  void deliver_oldest(int target) {
    const auto oldest = std::ranges::find(kept_, target, &Put::target);
    REQUIRE(oldest != kept_.end());
    memory_.put(oldest->bytes, target, oldest->offset);
    kept_.erase(oldest);
  }

  std::vector<int> ended{};  // as the transport knows
  std::set<int> closed{};    // have not said yet where their memory is

 private:
  struct Put {
    std::span<const std::byte> bytes;
    int target;
    std::size_t offset;
  };
  LocalMemory memory_;
  const std::set<int>& deaf_;
  const bool& keeps_back_;
  std::vector<Put> kept_{};
};

/// All ranks of a job, on one thread. A rank has `rank` neighbours' worth of other things before its rows.
struct Job {
  explicit Job(int ranks, int spare = 0) : sizes(make_sizes(ranks, spare)), blocks(sizes) {
    for (int r = 0; r < ranks; ++r) {
      memories.push_back(std::make_unique<DeafMemory>(blocks, r, deaf, keeps_back));
      ledgers.push_back(std::make_unique<Ledger>(static_cast<std::size_t>(ranks), 1, [] { return now += 1ns; }));
      std::vector<std::size_t> offsets;
      std::vector<int> slots;
      for (int other = 0; other < ranks; ++other) {
        offsets.push_back(before(other));
        slots.push_back(other % 2 == 0 ? other : -1);
      }
      detectors.push_back(
          std::make_unique<FailureDetector>(*memories.back(), r, offsets, slots, timeout, *ledgers.back(), spare));
    }
  }
  static std::size_t before(int rank) { return 64 * static_cast<std::size_t>(rank); }
  static std::vector<std::size_t> make_sizes(int ranks, int spare) {
    std::vector<std::size_t> all;
    for (int r = 0; r < ranks; ++r) all.push_back(before(r) + FailureDetector::bytes(ranks, spare));
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
  std::set<int> deaf{};     // answer nobody
  bool keeps_back = false;  // what nobody asks about does not leave
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

TEST_CASE("a rank that was stopped is told, where puts leave only when somebody asks about them") {
  Job job(4);
  job.keeps_back = true;
  job.pass(5s);
  for (int r = 0; r < 4; ++r) REQUIRE(job[r].dead() == 0);
  job.deaf = {2};
  job.pass(2 * timeout, {2});
  REQUIRE(!job[0].alive(2));
  job.deaf = {};
  CHECK_THROWS_AS(job.pass(timeout / 2), TakenForDead);
  CHECK(job[2].dead() == 0);
}

/// Rank 2 is stopped until the others have taken it for dead and ended; what they sent it has not left.
void end_without_rank_2(Job& job) {
  job.pass(5s);
  job.keeps_back = true;
  job.deaf = {2};
  job.pass(2 * timeout, {2});
  for (const int r : {0, 1, 3}) job[r].leave();
  job.pass(100ms, {2});
}

TEST_CASE("a rank that was stopped until the others had ended does not go on alone") {
  Job job(4);
  end_without_rank_2(job);
  CHECK_THROWS_WITH_AS(job.pass(3 * timeout, {0, 1, 3}), doctest::Contains("hears of nobody since"), TakenForDead);
  CHECK(job[2].dead() == 0);
}

TEST_CASE("a rank that was stopped, and hears that the others are gone, looks first at what they said of it") {
  Job job(4);
  job.pass(5s);
  job.pass(2 * timeout, {2});
  REQUIRE(!job[0].alive(2));
  job.memories[2]->ended = {0, 1, 3};
  CHECK_THROWS_WITH_AS(job.pass(10ms, {0, 1, 3}), doctest::Contains("was taken for dead by rank 0"), TakenForDead);
  CHECK(job[2].dead() == 0);
}

TEST_CASE("what was sent before a rank was stopped, and comes when it goes on, is no sign of life") {
  Job job(4);
  end_without_rank_2(job);
  job.pass(50ms, {0, 1, 3});
  for (const int r : {0, 1, 3}) job.memories[static_cast<std::size_t>(r)]->deliver_oldest(2);
  CHECK_THROWS_WITH_AS(job.pass(3 * timeout, {0, 1, 3}), doctest::Contains("hears of nobody since"), TakenForDead);
  CHECK(job[2].dead() == 0);
}

TEST_CASE("two ranks that were stopped together take a third that died meanwhile for dead, and go on") {
  Job job(3);
  job.pass(5s);
  now += 2 * timeout;
  job.pass(timeout / 2, {2});
  CHECK(job[0].dead() == 0);
  job.pass(timeout, {2});
  for (const int r : {0, 1}) {
    CHECK(job[r].dead() == 1);
    CHECK(!job[r].alive(2));
  }
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

/// The two neighbours on a ring.
std::vector<int> beside(int vertex, int vertices) {
  return {(vertex + vertices - 1) % vertices, (vertex + 1) % vertices};
}

TEST_CASE("spares take the vertices of the dead in their order, one each, and all agree on who works where") {
  constexpr int vertices = 5, spares = 3;
  const auto near = [](int vertex) { return beside(vertex, vertices); };
  Random random(11);
  for (int round = 0; round < 20; ++round) {
    Job job(vertices + spares, spares);
    job.pass(3s);
    std::set<int> dead;
    std::vector<int> expected(vertices);  // who works where
    for (int vertex = 0; vertex < vertices; ++vertex) expected[static_cast<std::size_t>(vertex)] = vertex;
    for (int spare = vertices; spare < vertices + spares; ++spare) {
      for (int r = 0; r < vertices + spares; ++r) {
        if (dead.contains(r)) continue;
        CHECK(!(r >= vertices && job[r].vertex_to_take(near)));  // nobody is dead whose vertex is free
      }
      const auto vertex = static_cast<int>(random.below(vertices));
      dead.insert(expected[static_cast<std::size_t>(vertex)]);
      job.pass(timeout + 500ms, dead);
      for (int later = spare + 1; later < vertices + spares; ++later) CHECK(!job[later].vertex_to_take(near));
      REQUIRE(job[spare].vertex_to_take(near) == vertex);
      job[spare].take(vertex);
      job.pass(100ms, dead);
      for (int r = 0; r < vertices + spares; ++r) {
        if (dead.contains(r)) continue;
        CHECK(job[r].holder(vertex) == spare);
        CHECK(!job[r].takes_part(spare));
        CHECK(job[r].participants().size() == static_cast<std::size_t>(vertices) - 1);
      }
      job[spare].take_part();
      job.pass(100ms, dead);
      expected[static_cast<std::size_t>(vertex)] = spare;
    }
    for (int r = 0; r < vertices + spares; ++r) {
      if (dead.contains(r)) continue;
      for (int vertex = 0; vertex < vertices; ++vertex)
        CHECK(job[r].holder(vertex) == expected[static_cast<std::size_t>(vertex)]);
      CHECK(job[r].participants() == [&] {
        std::vector<int> sorted = expected;
        std::ranges::sort(sorted);
        return sorted;
      }());
      CHECK(job[r].joins().size() == spares);
      CHECK(job[r].changes() == 3 * spares);
    }
  }
}

TEST_CASE("who takes a vertex works there for others once they can write to its memory, and not before") {
  constexpr int vertices = 3, spare = 3;
  Job job(vertices + 1, 1);
  job.memories[0]->closed = {spare};
  job.pass(3s);
  const std::set<int> dead{1};
  job.pass(timeout + 500ms, dead);
  REQUIRE(job[spare].vertex_to_take([](int vertex) { return beside(vertex, vertices); }) == 1);
  job[spare].take(1);
  job[spare].take_part();
  job.pass(500ms, dead);
  CHECK(job[0].holder(1) == 1);
  CHECK(!job[0].takes_part(spare));
  CHECK(job[2].holder(1) == spare);
  job.memories[0]->closed.clear();
  job.pass(500ms, dead);
  CHECK(job[0].holder(1) == spare);
  CHECK(job[0].takes_part(spare));
  CHECK(job[0].joins().size() == 1);
}

TEST_CASE("a rank that was away learns of a death before it learns who came, one after the other in one vertex") {
  constexpr int vertices = 4, spares = 2;
  const auto near = [](int vertex) { return beside(vertex, vertices); };
  const auto took = [&](Job& job, int spare, int vertex) {
    REQUIRE(job[spare].vertex_to_take(near) == vertex);
    job[spare].take(vertex);
    job[spare].take_part();
  };
  Job job(vertices + spares, spares);
  job.pass(3s);
  job.pass(timeout - 100ms, {2});
  job.pass(300ms, {0, 2});
  REQUIRE(job[0].dead() == 0);
  took(job, 4, 2);
  job.pass(100ms, {0, 2});
  job.pass(20ms, {2});
  REQUIRE(job[0].deaths().size() == 1);
  REQUIRE(job[0].joins().size() == 1);
  CHECK(job[0].deaths()[0].process == 2);
  CHECK(job[0].joins()[0].process == 4);
  CHECK(job[0].deaths()[0].at_s < job[0].joins()[0].at_s);

  job.pass(timeout - 100ms, {2, 4});
  job.pass(300ms, {0, 2, 4});
  took(job, 5, 2);
  job.pass(100ms, {0, 2, 4});
  job.pass(20ms, {2, 4});
  REQUIRE(job[0].deaths().size() == 2);
  CHECK(job[0].deaths()[1].process == 4);
  CHECK(job[0].holder(2) == 5);
  CHECK(job[0].deaths()[1].at_s < job[0].joins().at(1).at_s);
}

TEST_CASE("a vertex is taken only where a neighbour has a model to give; a dead or useless spare is passed over") {
  constexpr int vertices = 5, spares = 2;
  const auto near = [](int vertex) { return beside(vertex, vertices); };
  Job job(vertices + spares, spares);
  job.pass(3s);
  job.pass(timeout + 500ms, {0, 1, 4});
  REQUIRE(job[5].vertex_to_take(near) == 1);  // both neighbours of 0 are dead
  job[5].take(1);
  job.pass(100ms, {0, 1, 4});
  CHECK(job[6].vertex_to_take(near) == 4);
  job[5].take_part();
  job.pass(100ms, {0, 1, 4});
  CHECK(job[6].vertex_to_take(near) == 0);

  Job other(vertices + spares, spares);
  other.pass(3s);
  other.pass(timeout + 500ms, {2, 5});
  CHECK(other[6].vertex_to_take(near) == 2);
}

TEST_CASE("a word of a spare's that is half put is not believed") {
  Job job(4, 1);
  job.pass(3s);
  const std::size_t row = FailureDetector::bytes(4, 1) / 4;
  const std::size_t word = Job::before(0) + 3 * row + row - sizeof(std::uint64_t);
  for (const std::uint64_t torn : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}, std::uint64_t{7} << 32}) {
    job.memories[3]->store(torn, 0, word);
    job.pass(20ms, {3});
    CHECK(!job[0].vertex_of(3));
  }
  CHECK(job[0].changes() == 0);
}

TEST_CASE("without spares a row is as long as it was") {
  CHECK(FailureDetector::bytes(4) == 4 * 2 * sizeof(std::uint64_t));
  CHECK(FailureDetector::bytes(33) == 33 * 3 * sizeof(std::uint64_t));
  CHECK(FailureDetector::bytes(4, 1) == 4 * 3 * sizeof(std::uint64_t));
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
}  // namespace hearsay::failure_detector_test
