// A rank that stands still is named once others have waited for it for the time-out, and nobody else ever is.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/exchange/membership/pulse.hpp"
#include "tests/support/local_memory.hpp"

namespace hearsay::pulse_test {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds now{};  // a Clock is a function without arguments

/// Counts what is read.
class CountingMemory final : public RemoteMemory {
 public:
  CountingMemory(test::LocalBlocks& blocks, int rank) : memory_(blocks, rank) {}
  std::span<std::byte> own() override { return memory_.own(); }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    memory_.put(bytes, target, offset);
  }
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    memory_.store(word, target, offset);
  }
  bool flush(int target) override { return memory_.flush(target); }
  void sync() override {}
  std::optional<std::uint64_t> peek(int target, std::size_t offset) override {
    ++reads;
    return memory_.peek(target, offset);
  }
  int reads = 0;

 private:
  test::LocalMemory memory_;
};

/// A job of three whose time passes by hand.
struct Job {
  static constexpr int ranks = 3;
  static constexpr std::chrono::nanoseconds timeout = 10s;

  Job() {
    now = 1h;
    const std::vector<std::size_t> offsets{0, 8, 64};
    for (int r = 0; r < ranks; ++r) {
      memories.push_back(std::make_unique<CountingMemory>(blocks, r));
      pulses.push_back(std::make_unique<Pulse>(*memories.back(), r, offsets, timeout, [] { return now; }));
    }
  }
  /// `by` passes in steps of a millisecond, in which all look but for those that stand still; rank 0 moves on if told.
  void pass(std::chrono::nanoseconds by, std::vector<int> still = {}, bool moves_on = false) {
    for (const auto end = now + by; now < end; now += 1ms)
      for (int r = 0; r < ranks; ++r) {
        if (std::ranges::find(still, r) != still.end()) continue;
        if (moves_on) pulses[static_cast<std::size_t>(r)]->moved();
        for (int call = 0; call < 16; ++call) pulses[static_cast<std::size_t>(r)]->progress();
      }
  }

  test::LocalBlocks blocks{std::vector<std::size_t>{128, 128, 128}};
  std::vector<std::unique_ptr<CountingMemory>> memories;
  std::vector<std::unique_ptr<Pulse>> pulses;
};

TEST_CASE("ranks that compute for long, and nobody moves on, are none that stand still") {
  Job job;
  CHECK_NOTHROW(job.pass(100s));
  CHECK(job.memories[0]->reads > 0);
}

TEST_CASE("who moves on by itself reads nothing") {
  Job job;
  CHECK_NOTHROW(job.pass(100s, {1}, true));
  CHECK(job.memories[0]->reads == 0);
}

TEST_CASE("a rank that stands still is named after the time-out, not before") {
  Job job;
  job.pass(5s);
  CHECK_NOTHROW(job.pass(9500ms, {2}));
  const auto before = now;
  CHECK_THROWS_WITH_AS(job.pass(1500ms, {2}), doctest::Contains("rank 2 has not moved for"), CommunicationError);
  CHECK(now - before > 400ms);
}

TEST_CASE("a rank that goes on before the time-out is none that stood still, however often") {
  Job job;
  for (int time = 0; time < 5; ++time) {
    CHECK_NOTHROW(job.pass(9s, {1}));
    CHECK_NOTHROW(job.pass(1s));
  }
}

TEST_CASE("who has been away itself believes nobody's silence from before") {
  Job job;
  job.pass(5s);
  CHECK_NOTHROW(job.pass(9s, {1}));
  now += 60s;
  CHECK_NOTHROW(job.pass(9s, {1}));
  CHECK_THROWS_WITH(job.pass(2s, {1}), doctest::Contains("rank 1 has"));
}

TEST_CASE("all that stand still are named; where the job is done nobody is") {
  Job job;
  job.pass(5s);
  CHECK_THROWS_WITH(job.pass(12s, {0, 2}), doctest::Contains("rank 0, rank 2 have not moved"));
  Job done;
  done.pass(5s);
  for (const auto& pulse : done.pulses) pulse->rest();
  CHECK_NOTHROW(done.pass(60s, {0, 2}));
}

}  // namespace
}  // namespace hearsay::pulse_test
