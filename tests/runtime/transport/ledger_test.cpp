// The ledger: what two threads count at once, and what nobody has counted.
#include <thread>

#include <doctest/doctest.h>

#include "runtime/transport/ledger.hpp"

namespace hearsay::ledger_test {
namespace {

TEST_CASE("two threads count on the same edges, each its own things, and nothing is lost") {
  constexpr std::size_t edges = 10'000;
  Ledger ledger(edges, 0);
  const auto on_every_edge = [&](auto count) {
    return std::thread([=] {
      for (std::size_t e = 0; e < edges; ++e) count(e);
    });
  };
  std::thread communicating = on_every_edge([&](std::size_t e) { ledger.control_put(e, 8); });
  std::thread computing = on_every_edge([&](std::size_t e) { ledger.defer(e, 1); });
  communicating.join();
  computing.join();
  CHECK(ledger.totals().control_bytes == 8 * edges);
  CHECK(ledger.totals().deferred == edges);
}

TEST_CASE("an edge that nobody counts on has zeros, beside one that somebody does") {
  Ledger ledger(100, 0);
  ledger.header_put(40, 32);
  for (std::size_t e = 0; e < ledger.neighbours(); ++e) CHECK(ledger.edge(e).bytes() == (e == 40 ? 32 : 0));
}

double now_s = 0.0;
std::chrono::nanoseconds set_by_hand() { return std::chrono::nanoseconds(static_cast<std::int64_t>(now_s * 1e9)); }

TEST_CASE("every moment is charged once: what timers within a timer charge, it does not") {
  Ledger ledger(0, 0, set_by_hand);
  const auto pass = [](double seconds) { now_s += seconds; };
  {
    const PhaseTimer computing(ledger, Phase::compute);
    pass(1);
    {
      const PhaseTimer waiting(ledger, Phase::wait);
      pass(2);
      const PhaseTimer mixing(ledger, Phase::mix);
      pass(4);
    }
    pass(8);
    const PhaseTimer more(ledger, Phase::wait);
    pass(16);
  }
  CHECK(ledger.seconds(Phase::compute) == 1 + 8);
  CHECK(ledger.seconds(Phase::wait) == 2 + 16);
  CHECK(ledger.seconds(Phase::mix) == 4);
  CHECK(ledger.charged() == std::chrono::seconds(31));
}

TEST_CASE("the communication thread's phases are parts of each other, and take nothing from a phase around them") {
  Ledger ledger(0, 0, set_by_hand);
  {
    const PhaseTimer waiting(ledger, Phase::wait);  // as in a simulation, whose jobs run in their caller
    const PhaseTimer communicating(ledger, Phase::communicate);
    now_s += 1;
    const PhaseTimer encoding(ledger, Phase::communicate_encode);
    now_s += 2;
  }
  CHECK(ledger.seconds(Phase::wait) == 3);
  CHECK(ledger.seconds(Phase::communicate) == 3);
  CHECK(ledger.seconds(Phase::communicate_encode) == 2);
}

TEST_CASE("computing beside a job is computing, not waiting, and no longer than somebody waited") {
  Ledger ledger(0, 0, set_by_hand);
  {
    const PhaseTimer waiting(ledger, Phase::wait);
    now_s += 3;
  }
  ledger.computed_while_waiting(2);
  CHECK(ledger.seconds(Phase::wait) == 1);
  CHECK(ledger.seconds(Phase::compute) == 2);
  ledger.computed_while_waiting(2);
  CHECK(ledger.seconds(Phase::wait) == 0);
  CHECK(ledger.seconds(Phase::compute) == 3);
  CHECK(ledger.charged() == std::chrono::seconds(3));
}

}  // namespace
}  // namespace hearsay::ledger_test
