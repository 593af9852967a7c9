// Only what travels between ranks crosses the bus, and a norm a segment: whatever the length of the replica.
#include <doctest/doctest.h>

#include "tests/exchange/configuration.hpp"
#include "tests/exchange/global_job.hpp"
#include "tests/support/emulated_device.hpp"

namespace hearsay {
namespace {

using namespace test;

constexpr Iteration iterations = 20;
constexpr int ranks = 3;

struct Crossed {
  JobOutcome outcome;
  std::uint64_t bytes = 0;
};

/// Bytes over the buses of all ranks; the tests' own way of training, which brings x and g to the processor, apart.
Crossed train(const std::string& yaml) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 7);
  std::vector<BusCounter> counters(ranks);
  for (BusCounter& counter : counters) counter = std::make_shared<std::uint64_t>();
  Crossed crossed{.outcome = train_locally(yaml, layout, problem.initial(), problem,
                                           {.ranks = ranks, .iterations = iterations, .device = [&](int rank) {
                                              return emulated_device(1, 4096, counters[static_cast<std::size_t>(rank)]);
                                            }})};
  const std::uint64_t block = layout.size() * sizeof(float);
  for (const BusCounter& counter : counters) crossed.bytes += *counter;
  crossed.bytes -= ranks * (iterations * 5 * block + 2 * block);
  return crossed;
}

std::uint64_t norms() { return ranks * (iterations + 1) * reference::small_layout().count() * sizeof(double); }

/// On a ring of 3 in lockstep a packet is made once and read by two.
std::uint64_t packets(const JobOutcome& outcome) { return outcome.totals().payload_bytes / 2 * 3; }

TEST_CASE("dpsgd: the packets, once when they are made and once where they are read") {
  const Crossed crossed = train(std::string(ring) + dpsgd);
  CHECK(crossed.bytes == packets(crossed.outcome));
}

TEST_CASE("eventgrad: the norms, and what fired") {
  for (const auto& trigger : trigger_choices()) {
    CAPTURE(trigger.yaml);
    const Crossed crossed = train(ring + eventgrad("{name: difference, gamma: 0.3}") + trigger.yaml);
    CHECK(crossed.bytes == norms() + packets(crossed.outcome));
  }
  const Crossed silent =
      train(ring + eventgrad("{name: stale}") + "trigger: {name: constant, threshold: 1e30, warmup_iterations: 0}\n");
  CHECK(silent.outcome.totals().messages == 0);
  CHECK(silent.bytes == norms());
}

TEST_CASE("a tenth of the values: as many values and positions, out and in, and what a selection says of itself") {
  const Crossed crossed = train(ring + eventgrad("{name: difference, gamma: 0.3}") +
                                "trigger: {name: always}\nsparsify: {selector: {name: topk, density: 0.1}}\n");
  const LedgerTotals totals = crossed.outcome.totals();
  const std::uint64_t entries = 2 * totals.payload_bytes;  // a position for every value
  // Out once, back once into the own copy, and in at two neighbours.
  const std::uint64_t reports = totals.messages / 2 * sizeof(device::Control);
  CHECK(crossed.bytes == norms() + entries / 2 * 4 + reports);
}

}  // namespace
}  // namespace hearsay
