// Only what travels between ranks crosses the bus, and a norm a segment: whatever the length of the replica.
#include <algorithm>
#include <functional>

#include <doctest/doctest.h>

#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/global_job.hpp"
#include "tests/support/emulated_device.hpp"

namespace hearsay::bus_test {
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

/// Both ways for what is written on a device or added there: what it is told of each segment; of what is written a word
/// comes back.
std::uint64_t told_of_codes() {
  return reference::small_layout().count() * (3 * sizeof(device::CodedRun) + sizeof(std::uint32_t));
}

TEST_CASE("whole segments in 8 bits: their bytes out, and in at two neighbours, no values and no positions") {
  const Layout layout = reference::small_layout();
  const std::uint64_t payload = layout.size() + layout.count() * sizeof(float);
  for (const std::string selector : {"{name: dense}", "{name: topk, density: 1}"}) {
    CAPTURE(selector);
    const Crossed crossed =
        train(ring + eventgrad("{name: difference, gamma: 0.3}") +
              "trigger: {name: always}\nsparsify: {selector: " + selector + ", quantiser: {name: int8}}\n");
    CHECK(crossed.bytes == norms() + ranks * iterations * (3 * payload + told_of_codes()));
  }
}

TEST_CASE("a tenth of the values in 2 bits: as many positions, and their bytes") {
  const Crossed crossed = train(ring + eventgrad("{name: difference, gamma: 0.3}") +
                                "trigger: {name: always}\nsparsify: {selector: {name: topk, density: 0.1}, quantiser: "
                                "{name: two_bit}}\n");
  std::uint64_t of_packet = told_of_codes();
  const Layout layout = reference::small_layout();
  for (const Segment& s : layout.segments()) {
    const std::uint64_t k = kept_count(0.1, s.length);
    const std::uint64_t positions = k == s.length ? 0 : k * sizeof(std::uint32_t);
    of_packet += 3 * (positions + 2 * sizeof(float) + (2 * k + 7) / 8);
  }
  CHECK(crossed.bytes == norms() + ranks * iterations * of_packet);
}

TEST_CASE(
    "gossip_outer works on a mirror, and where training ends within a round the steps are taken back there, too") {
  const Plan plan(std::string(ring) + "exchange: {name: gossip_outer, schedule: asynchronous, local_steps: 3}\n" +
                  "trigger: {name: always}\n");
  const Topology topology = plan.topology(1);
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 1, 7);
  const auto ended_on = [&](const std::shared_ptr<Device>& device) {
    const LocalJob job{.topology = topology,
                       .layout = layout,
                       .initial = problem.initial(),
                       .plan = plan.exchange(),
                       .device = [&](int) { return device; }};
    LocalWorld world(job);
    const auto rank = world.make_rank(0);
    RankTrainer trainer(rank->member, problem, {});
    for (Iteration k = 0; k < 5; ++k) trainer.start(k), trainer.finish(k);
    const auto within = fetched(*device, rank->replica.values.span());
    rank->member.service().end();
    auto ended = fetched(*device, rank->replica.values.span());
    CHECK(ended != within);
    return ended;
  };
  CHECK(ended_on(emulated_device(1)) == ended_on(processor()));
}

/// The same on the global path, of `iterations` iterations.
std::uint64_t global_bytes(const std::string& yaml, GlobalOutcome& outcome) {
  const std::uint64_t block = reference::small_layout().size() * sizeof(float);
  std::vector<BusCounter> counters(ranks);
  for (BusCounter& counter : counters) counter = std::make_shared<std::uint64_t>();
  outcome =
      run_global(yaml, {.ranks = ranks,
                        .iterations = iterations,
                        .device = [&](int r) { return emulated_device(1, 64, counters[static_cast<std::size_t>(r)]); },
                        .gradient = integer_gradient});
  std::uint64_t bytes = 0;
  for (const BusCounter& counter : counters) bytes += *counter;
  return bytes - ranks * (iterations * 2 * block + block);
}

TEST_CASE("the global path: a dense gradient out and its mean in") {
  GlobalOutcome outcome;
  const std::uint64_t block = reference::small_layout().size() * sizeof(float);
  for (const std::string exchange : {"{name: allreduce, method: library}", "{name: hitopk}"})
    CHECK(global_bytes("exchange: " + exchange + "\n", outcome) == ranks * iterations * 2 * block);
}

TEST_CASE("the ring: every part out once, in once to be added and once as a sum; and whether all are numbers") {
  GlobalOutcome outcome;
  const std::uint64_t block = reference::small_layout().size() * sizeof(float);
  const std::uint64_t of_iteration = (ranks + 2 * (ranks - 1)) * block + ranks * 2 * sizeof(double);
  CHECK(global_bytes("exchange: {name: allreduce, method: ring}\n", outcome) == iterations * of_iteration);
}

TEST_CASE("the global path: a rank's entries out, those of the sum in") {
  GlobalOutcome outcome;
  const Layout layout = reference::small_layout();
  const std::uint64_t bytes =
      global_bytes("exchange: {name: topk}\nsparsify: {selector: {name: topk, density: 0.1}}\n", outcome);
  constexpr std::uint64_t entry = sizeof(std::uint32_t) + sizeof(float);
  std::uint64_t in = 0;
  for (const auto& rank : outcome.came_out)
    for (const Vector& g : rank) in += entry * static_cast<std::uint64_t>(g.size() - std::ranges::count(g, 0.0F));
  const std::uint64_t out = ranks * iterations * (entry * kept_count(0.1, layout.size()) + sizeof(device::Control));
  const std::uint64_t residuals = ranks * layout.size() * sizeof(float);  // asked for at the end
  CHECK(bytes == out + in + residuals);
}

/// What has made devices wait as a whole in a job of so many iterations.
std::uint64_t device_wide(Iteration length, const std::function<void(Iteration)>& job) {
  const std::uint64_t before = DeviceWide::waits;
  job(length);
  return DeviceWide::waits - before;
}

TEST_CASE("once a run is under way no device waits as a whole: no memory is asked for, no copy holds it up") {
  constexpr Iteration settled = 25, later = 50;
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 7);
  const auto device = [](int rank) { return emulated_device(static_cast<std::uint64_t>(rank), 4096); };
  const std::string always = "trigger: {name: always}\n", difference = eventgrad("{name: difference, gamma: 0.3}");
  for (const std::string& yaml : {
           ring + std::string(dpsgd),
           ring + difference + always,
           ring + difference + always + "sparsify: {selector: {name: topk, density: 0.1}}\n",
           ring + difference + always + "sparsify: {selector: {name: sampled, density: 0.1}}\n",
           ring + difference + always + "sparsify: {selector: {name: mstopk, density: 0.1}, quantiser: {name: int8}}\n",
           ring + difference + always + "sparsify: {selector: {name: chunked, density: 0.1, chunk: 64}}\n",
       }) {
    CAPTURE(yaml);
    const auto job = [&](Iteration length) {
      train_locally(yaml, layout, problem.initial(), problem, {.ranks = ranks, .iterations = length, .device = device});
    };
    CHECK(device_wide(later, job) == device_wide(settled, job));
  }
  const std::string tenth = "sparsify: {selector: {name: topk, density: 0.1}}\n";
  for (const std::string& yaml : {std::string("exchange: {name: allreduce, method: ring, bucket_bytes: 300}\n"),
                                  "exchange: {name: topk}\n" + tenth, "exchange: {name: gtopk}\n" + tenth,
                                  std::string("exchange: {name: lkgs}\n"), std::string("exchange: {name: hitopk}\n")}) {
    CAPTURE(yaml);
    const auto job = [&](Iteration length) {
      run_global(yaml, {.ranks = ranks, .iterations = length, .device = device, .gradient = integer_gradient});
    };
    CHECK(device_wide(later, job) == device_wide(settled, job));
  }
}

TEST_CASE("a tenth of the values: as many values and positions, out and in, and what a selection says of itself") {
  const Crossed crossed = train(ring + eventgrad("{name: difference, gamma: 0.3}") +
                                "trigger: {name: always}\nsparsify: {selector: {name: topk, density: 0.1}}\n");
  std::uint64_t of_packet = 0;
  const Layout layout = reference::small_layout();
  for (const Segment& s : layout.segments()) {
    const std::uint64_t k = kept_count(0.1, s.length);
    const bool all = k == s.length;  // then there is nothing to select, and no positions
    // Out once, back once into the own copy, and in at two neighbours.
    of_packet += 4 * k * (all ? sizeof(float) : sizeof(float) + sizeof(std::uint32_t));
    of_packet += all ? 0 : sizeof(device::Control);
  }
  CHECK(crossed.bytes == norms() + ranks * iterations * of_packet);
}

}  // namespace
}  // namespace hearsay::bus_test
