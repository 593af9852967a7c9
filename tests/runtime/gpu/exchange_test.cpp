// An exchange does the same wherever the replica lives: on a GPU every rank computes, sends and is sent what it is on
// the processor, to the last bit; also on the emulated one, whose memory the processor cannot look at and whose passes
// are late.
#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/global_job.hpp"
#include "tests/runtime/gpu/machine.hpp"

namespace hearsay::exchange_test {
namespace {

using namespace test;

bool runs_there(const ExchangePlan& plan) { return plan.runs_on(*replica_device(0)); }

void check_same(const JobOutcome& there, const JobOutcome& here) {
  CHECK(there.hashes() == here.hashes());
  for (std::size_t r = 0; r < here.ranks.size(); ++r) {
    CHECK(there.ranks[r].events == here.ranks[r].events);
    CHECK(there.ranks[r].segment_payload_bytes == here.ranks[r].segment_payload_bytes);
  }
  CHECK(there.totals().index_bytes == here.totals().index_bytes);
  CHECK(there.totals().header_bytes == here.totals().header_bytes);
}

void compare(const std::string& yaml, int ranks, Ranks run = Ranks::one_thread) {
  CAPTURE(yaml);
  CAPTURE(ranks);
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, ranks, 7);
  JobOptions options{.ranks = ranks, .iterations = 20, .run = run};
  const JobOutcome here = train_locally(yaml, layout, problem.initial(), problem, options);
  options.device = [](int rank) { return replica_device(rank); };
  check_same(train_locally(yaml, layout, problem.initial(), problem, options), here);
}

TEST_CASE("dpsgd is the same on a device") {
  REQUIRE(runs_there(Plan(std::string(ring) + dpsgd).exchange()));
  for (const int ranks : {1, 2, 3, 5})
    for (const auto& graph : graph_choices()) compare(graph.yaml + dpsgd, ranks);
  compare(one_peer + dpsgd, 4);
  compare(std::string(ring) + "exchange: {name: dpsgd, schedule: asynchronous}\n", 3);
  compare(std::string(ring) + dpsgd, 4, Ranks::threads_with_communication_threads);
  compare(ring + std::string("exchange: {name: dpsgd, strategy: diffusion, correction: {name: drift}}\n"), 3,
          Ranks::threads);
}

TEST_CASE("momentum, trackers and pushed sums are the same on a mirror") {
  for (const std::string name : {"quasi_global_momentum", "gradient_tracking", "momentum_tracking", "push_sum"}) {
    const std::string exchange = "exchange: {name: " + name + "}\n";
    CHECK_FALSE(runs_there(Plan(ring + exchange).exchange()));
    compare(ring + exchange, 3);
    compare(one_peer + exchange, 4);
  }
  for (const std::string name : {"beer", "motef", "cedas"})
    for (const auto& sparsify : sparsify_choices())
      compare(ring + std::string("exchange: {name: ") + name + "}\n" + sparsify.yaml, 3, Ranks::threads);
  compare("topology: {graph: {name: directed_exponential}, weights: {name: uniform}}\nexchange: {name: push_sum}\n", 5);
}

TEST_CASE("eventgrad is the same on a device: every trigger and mixing rule, whole and some values") {
  for (const auto& trigger : trigger_choices())
    for (const auto& mixing : mixing_choices())
      for (const auto& sparsify : sparsify_choices()) {
        const std::string yaml = ring + eventgrad(mixing.yaml) + trigger.yaml + sparsify.yaml;
        REQUIRE(runs_there(Plan(yaml).exchange()));
        compare(yaml, 3);
      }
}

TEST_CASE("drift correction, and triggers on the change, are the same on a device") {
  const std::string drift = ", correction: {name: drift, strength: 0.2}";
  const std::string trigger = "trigger: {name: constant, threshold: 0.3, measure: change, warmup_iterations: 2}\n";
  const auto dpsgd_with = [&](const std::string& schedule) {
    return ring + ("exchange: {name: dpsgd, schedule: " + schedule) + drift + "}\n";
  };
  compare(dpsgd_with("lockstep"), 3);
  compare(dpsgd_with("lockstep, delay: 1"), 3, Ranks::threads_with_communication_threads);
  compare(dpsgd_with("asynchronous"), 3);
  for (const auto& mixing : mixing_choices()) {
    if (mixing.rule == reference::Mixing::stale) continue;
    for (const auto& sparsify : sparsify_choices())
      for (const std::string schedule : {"lockstep", "asynchronous"})
        compare(ring + eventgrad(mixing.yaml, schedule + drift) + trigger + sparsify.yaml, 4);
  }
}

TEST_CASE("eventgrad is the same on a device: every kind of body, in lockstep and asynchronous") {
  for (const std::string& sparsify : every_kind_of_body())
    for (const std::string schedule : {"lockstep", "asynchronous"})
      compare(ring + eventgrad("{name: difference, gamma: 0.3}", schedule) +
                  "trigger: {name: constant, threshold: 0.05, warmup_iterations: 2}\nsparsify: " + sparsify + "\n",
              4);
}

TEST_CASE("changes that are quantised where they are are the same: every code, of all values and of some") {
  for (const std::string quantiser :
       {"int8", "fp4", "two_bit", "one_bit", "one_bit, centre: threshold", "one_bit, centre: row_mean"})
    for (const std::string selector : {"{name: dense, dense_below: 20}", "{name: topk, density: 0.3}"})
      for (const std::string more :
           {"lockstep", "lockstep, copies: edge", "lockstep, delay: 1, correction: {name: drift}", "asynchronous",
            "asynchronous, correction: {name: drift, strength: 0.2}"}) {
        const std::string yaml = ring + eventgrad("{name: difference, gamma: 0.3}", more) +
                                 "trigger: {name: constant, threshold: 0.05, warmup_iterations: 2}\n" +
                                 "sparsify: {selector: " + selector + ", quantiser: {name: " + quantiser + "}}\n";
        REQUIRE(runs_there(Plan(yaml).exchange()));
        compare(yaml, 4);
      }
}

TEST_CASE("every search is the same on a device: of changes with every kind of code, in lockstep and asynchronous") {
  for (const std::string selector :
       {"{name: mstopk, density: 0.1}", "{name: sampled, density: 0.1}", "{name: chunked, density: 0.2, chunk: 16}"})
    for (const std::string quantiser : {"none", "fp16", "int8"})
      for (const std::string more : {"lockstep", "lockstep, copies: edge", "asynchronous"}) {
        const std::string yaml = ring + eventgrad("{name: difference, gamma: 0.3}", more) +
                                 "trigger: {name: constant, threshold: 0.05, warmup_iterations: 2}\n" +
                                 "sparsify: {selector: " + selector + ", quantiser: {name: " + quantiser + "}}\n";
        REQUIRE(runs_there(Plan(yaml).exchange()));
        compare(yaml, 4);
      }
}

TEST_CASE("events of single values are the same on a device") {
  const std::string by_values = "trigger: {name: value_events}\nsparsify: {quantiser: {name: dead_zone, step: 0.05}}\n";
  for (const std::string more : {"lockstep", "lockstep, copies: edge", "lockstep, correction: {name: drift}",
                                 "asynchronous", "asynchronous, correction: {name: drift, strength: 0.2}"}) {
    const std::string yaml = ring + eventgrad("{name: difference, gamma: 1}", more) + by_values;
    REQUIRE(runs_there(Plan(yaml).exchange()));
    compare(yaml, 4);
  }
}

TEST_CASE("what a device cannot choose runs on a mirror, which is the same") {
  const std::string drawn = ring + eventgrad("{name: stale}") + "sparsify: {selector: {name: random, density: 0.1}}\n";
  CHECK(!runs_there(Plan(drawn).exchange()));
  compare(drawn, 3);
  compare(ring + eventgrad("{name: arrival}", "asynchronous") + "sparsify: {selector: {name: random, density: 0.1}}\n",
          3);  // whose gradients are of where `start` has moved them
  compare(ring + eventgrad("{name: arrival}", "lockstep, strategy: diffusion") +
              "sparsify: {selector: {name: random, density: 0.1}}\n",
          3, Ranks::threads);
}

/// What a user of GPUs is told of it.
std::string told_of(const ExchangePlan& plan) {
  std::string all;
  for (const std::string& sentence : plan.warnings_on_gpus()) all += sentence;
  return all;
}

TEST_CASE("what the processor does for a replica on a GPU is said beforehand, and nothing where it does nothing") {
  const auto neighbours = [](const std::string& selector, const std::string& quantiser) {
    return told_of(Plan(ring + eventgrad("{name: difference, gamma: 0.3}") + "sparsify: {selector: {name: " + selector +
                        "}, quantiser: {name: " + quantiser + "}}\n")
                       .exchange());
  };
  for (const std::string selector : {"dense", "topk", "mstopk", "chunked"})
    for (const std::string quantiser : {"none", "int8", "fp4", "two_bit", "one_bit", "dead_zone, step: 0.1"})
      CHECK(neighbours(selector, quantiser).empty());
  CHECK(neighbours("sampled", "none").empty());
  for (const std::string quantiser : {"fp16", "one_bit, centre: row_mean"})
    CHECK(neighbours("topk", quantiser).find("row_mean") != std::string::npos);
  CHECK(neighbours("sampled", "int8").find("sampled") != std::string::npos);
  CHECK(told_of(Plan(std::string(ring) + dpsgd).exchange()).empty());

  const std::string mirror = "20 bytes a value";
  CHECK(neighbours("random", "none").find(mirror) != std::string::npos);
  CHECK(told_of(Plan(ring + std::string("exchange: {name: push_sum}\n")).exchange()).find(mirror) != std::string::npos);
  CHECK(told_of(*GlobalPlan("exchange: {name: gradient_dropping}\n")).find(mirror) != std::string::npos);
  CHECK(told_of(*GlobalPlan("exchange: {name: allreduce}\n")).empty());
  for (const std::string name : {"hitopk", "lkgs"})
    CHECK(told_of(*GlobalPlan("exchange: {name: " + name + "}\n")).find("4 bytes a value") != std::string::npos);
}

/// Gradients in, gradients out, residuals and bytes of every rank.
void compare_global(const std::string& yaml) {
  CAPTURE(yaml);
  GlobalOptions options{.ranks = 4, .nodes = {0, 0, 1, 1}, .gradient = integer_gradient};
  const GlobalOutcome here = run_global(yaml, options);
  options.device = [](int rank) { return replica_device(rank); };
  const GlobalOutcome there = run_global(yaml, options);
  CHECK(there.put_in == here.put_in);
  CHECK(there.came_out == here.came_out);
  CHECK(there.residual == here.residual);
  for (std::size_t r = 0; r < here.traffic.size(); ++r) CHECK(there.traffic[r].bytes == here.traffic[r].bytes);
}

TEST_CASE("the ring's sums are made on a device: every number of ranks, cut of the buckets and order of threads") {
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const std::string buckets : {"4", "64", "3000", "1000000"})
      for (const EngineKind engine : {EngineKind::inline_engine, EngineKind::thread_engine}) {
        CAPTURE(ranks);
        CAPTURE(buckets);
        GlobalOptions options{.ranks = ranks, .engine = engine, .delays = 7};
        options.gradient = [](int rank, Iteration k, std::span<float> g) {
          Random random(stream_seed(5, "gradient", static_cast<std::uint64_t>(100 * rank + k)));
          for (float& value : g) value = static_cast<float>(random.normal() * std::pow(10.0, random.uniform(-6, 6)));
        };
        const std::string yaml = "exchange: {name: allreduce, method: ring, bucket_bytes: " + buckets + "}\n";
        const GlobalOutcome here = run_global(yaml, options);
        options.device = [](int rank) { return replica_device(rank); };
        const GlobalOutcome there = run_global(yaml, options);
        CHECK(there.came_out == here.came_out);
        for (std::size_t r = 0; r < here.traffic.size(); ++r) {
          CHECK(there.traffic[r].bytes == here.traffic[r].bytes);
          CHECK(there.traffic[r].messages == here.traffic[r].messages);
        }
      }
}

TEST_CASE("a lane adds longer parts than its pieces are, to the last bit, and puts and fetches them") {
  constexpr std::size_t n = (std::size_t{2} << 20) + 12'345, shift = 3;  // two pieces and some
  const auto ours = normal_values(1, n), theirs = normal_values(2, n);
  const auto device = replica_device(1, 4096);
  FloatBlock block = device->block(shift + n);
  const auto values = block.span().subspan(shift);
  device->put(std::as_bytes(std::span(ours)), values);
  const auto lane = device->lane(n);
  REQUIRE(lane != nullptr);
  CHECK(processor()->lane(n) == nullptr);
  lane->follow();
  std::vector<float> sum(n);
  for (std::size_t i = 0; i < n; ++i) sum[i] = ours[i] + theirs[i];
  for (const unsigned which : {0U, 1U}) {
    lane->fetch(values, 1 - which);
    lane->wait(1 - which);
    CHECK(std::ranges::equal(lane->buffer(1 - which), ours));
    std::ranges::copy(theirs, lane->buffer(which).begin());
    lane->add(which, values);
    lane->wait(which);
    CHECK(std::ranges::equal(lane->buffer(which), sum));
    CHECK(fetched(*device, values) == sum);
    lane->put(1 - which, values);
    lane->wait(1 - which);
    CHECK(fetched(*device, values) == ours);
  }
}

TEST_CASE("division has the processor's bits, at any length and offset") {
  for (const std::size_t n : {0, 1, 3, 4, 1023, 10'007})
    for (const std::size_t shift : {0, 1, 4}) {
      const auto values = normal_values(n, shift + n);
      std::vector<std::vector<float>> results;
      for (const auto& device : {processor(), replica_device(0)}) {
        FloatBlock there = device->block(shift + n);
        device->put(std::as_bytes(std::span(values)), there.span());
        device->divide(7.0F, there.span().subspan(shift));
        results.push_back(fetched(*device, there.span()));
      }
      CHECK(results[1] == results[0]);
    }
}

TEST_CASE("the global path is the same on a device") {
  const std::string tenth = "sparsify: {selector: {name: topk, density: 0.1}}\n";
  for (const std::string& yaml :
       {std::string("exchange: {name: allreduce, method: ring}\n"),
        std::string("exchange: {name: allreduce, method: ring, overlap: false, bucket_bytes: 64}\n"),
        "exchange: {name: topk}\n" + tenth,
        "exchange: {name: gtopk}\n" + tenth,
        "exchange: {name: hitopk}\n" + tenth,
        "exchange: {name: hitopk, feedback: {clip_norm: 10}}\nsparsify: {selector: {name: mstopk, density: 0.1}}\n" +
            std::string(),
        "exchange: {name: lkgs}\n" + tenth,
        "exchange: {name: lkgs, overlap: false, feedback: {momentum: 0.5}}\n" + tenth,
        "exchange: {name: gtopk, merge: tree, residual: owner}\n" + tenth,
        "exchange: {name: gtopk_naive}\n" + tenth,
        "exchange: {name: gtopk, feedback: {momentum: 0.9}}\n" + tenth,
        "exchange: {name: topk, feedback: {momentum: 0.5, nesterov: true, factor_masking: false}}\n" + tenth,
        "exchange: {name: topk, feedback: {clip_norm: 10}}\n" + tenth,
        std::string("exchange: {name: topk}\nsparsify: {selector: {name: topk, density: 0.2, scope: per_segment}}\n"),
        std::string("exchange: {name: gtopk}\nsparsify: {selector: {name: topk, density: 0.1, scope: per_segment, "
                    "dense_below: 50}, quantiser: {name: one_bit}}\n"),
        std::string("exchange: {name: topk}\nsparsify: {selector: {name: mstopk, density: 0.1}}\n"),
        std::string("exchange: {name: gtopk}\nsparsify: {selector: {name: sampled, density: 0.1}}\n"),
        std::string("exchange: {name: topk}\nsparsify: {selector: {name: chunked, density: 0.1, chunk: 50, scope: "
                    "per_segment}}\n"),
        std::string("exchange: {name: topk}\nsparsify: {selector: {name: dense}, quantiser: {name: int8}}\n"),
        std::string("exchange: {name: topk}\nsparsify: {selector: {name: topk, density: 0.1}, density_schedule: [1, "
                    "0.5]}\n")}) {
    CAPTURE(yaml);
    REQUIRE(runs_there(*GlobalPlan(yaml)));
    compare_global(yaml);
  }
}

TEST_CASE("what of the global path has no passes on a device runs on a mirror") {
  const std::string dropping = "exchange: {name: gradient_dropping}\n";
  CHECK(!runs_there(*GlobalPlan(dropping)));
  compare_global(dropping);
  const std::string packed =
      "exchange: {name: topk}\nsparsify: {selector: {name: topk, density: 0.1, dense_below: 50}}\n";
  CHECK(!runs_there(*GlobalPlan(packed)));
  compare_global(packed);
}

TEST_CASE("a gradient that is not finite is refused by segment and position, on the processor and on a device") {
  for (const std::string scope : {"global", "per_segment"}) {
    for (const bool on_device : {false, true}) {
      GlobalOptions options{.ranks = 2};
      options.gradient = [](int rank, Iteration k, std::span<float> g) {
        std::ranges::fill(g, 1.0F);
        if (rank == 1 && k == 2) g[1 + 7 + 64 + 123] = NAN;
      };
      if (on_device) options.device = [](int rank) { return replica_device(rank); };
      const std::string yaml =
          "exchange: {name: topk}\nsparsify: {selector: {name: topk, density: 0.1, scope: " + scope + "}}\n";
      CHECK_THROWS_WITH_AS(run_global(yaml, options), doctest::Contains("gradient of parameter 'embedding'"),
                           DivergenceError);
      CHECK_THROWS_WITH_AS(run_global(yaml, options), doctest::Contains("123"), DivergenceError);
    }
  }
}

TEST_CASE(
    "allreduce refuses what is not finite on a device as on the processor: a gradient, and a sum that is too large") {
  for (const float odd : {NAN, INFINITY, std::numeric_limits<float>::max()}) {
    const bool sum = std::isfinite(odd);
    std::vector<std::string> told;
    for (const bool on_device : {false, true}) {
      GlobalOptions options{.ranks = 2};
      options.gradient = [=](int rank, Iteration k, std::span<float> g) {
        std::ranges::fill(g, 1.0F);
        if ((rank == 1 || sum) && k == 2) g[1 + 7 + 64 + 123] = odd;
      };
      if (on_device) options.device = [](int rank) { return replica_device(rank); };
      try {
        run_global("exchange: {name: allreduce, method: ring, bucket_bytes: 300}\n", options);
      } catch (const DivergenceError& error) {
        const std::string text = error.what();
        told.push_back(text.substr(text.find(" diverged")));  // of a sum all ranks say it, and any may be heard first
      }
    }
    REQUIRE(told.size() == 2);
    CHECK(told[1] == told[0]);
    CHECK(told[0].find("embedding") != std::string::npos);
  }
}

TEST_CASE("momentum correction has the processor's bits, at any length and offset") {
  Random random(9);
  for (const std::size_t n : {0, 1, 3, 4, 1023, 10007}) {
    for (const std::size_t shift : {0, 1, 4}) {
      for (const bool nesterov : {false, true}) {
        CAPTURE(n);
        CAPTURE(shift);
        std::vector<float> g(shift + n), u(shift + n);
        for (float& value : g) value = static_cast<float>(random.normal());
        for (float& value : u) value = static_cast<float>(random.normal());
        std::vector<std::vector<float>> results;
        for (const auto& device : {processor(), replica_device(0)}) {
          FloatBlock there_g = device->block(g.size()), there_u = device->block(u.size());
          device->put(std::as_bytes(std::span(g)), there_g.span());
          device->put(std::as_bytes(std::span(u)), there_u.span());
          device->add_momentum(0.9F, nesterov, 0.7F, there_g.span().subspan(shift), there_u.span().subspan(shift));
          results.push_back(fetched(*device, there_g.span()));
          results.push_back(fetched(*device, there_u.span()));
        }
        CHECK(results[2] == results[0]);
        CHECK(results[3] == results[1]);
      }
    }
  }
}

TEST_CASE("copies come whole through less staging memory than they are long") {
  Random random(3);
  for (const std::size_t staging : {1, 4, 12, 1000, 4096}) {
    CAPTURE(staging);
    const auto device = replica_device(0, staging);
    std::vector<float> first(100), second(57), got_first(100), got_second(57);
    for (float& value : first) value = static_cast<float>(random.normal());
    for (float& value : second) value = static_cast<float>(random.normal());
    FloatBlock a = device->block(100), b = device->block(57);
    auto given = first;
    device->put(std::as_bytes(std::span(given)), a.span());
    std::ranges::fill(given, -1.0F);  // read when the call has returned
    device->put(std::as_bytes(std::span(second)), b.span());
    device->fetch(a.span(), std::as_writable_bytes(std::span(got_first)));
    device->copy(a.span().first(57), b.span());
    device->fetch(b.span(), std::as_writable_bytes(std::span(got_second)));
    device->wait();
    CHECK(got_first == first);
    CHECK(std::ranges::equal(got_second, std::span(first).first(57)));
  }
}

TEST_CASE("copies of pinned memory: out of it, into it, beside it, and when it is pinned no longer") {
  constexpr std::size_t n = 100000;  // a GPU pins no less
  Random random(4);
  std::vector<float> here(n), got(n);
  for (float& value : here) value = static_cast<float>(random.normal());
  const auto device = replica_device(0, 4096);
  FloatBlock there = device->block(n);
  auto pin = device->pin(std::as_writable_bytes(std::span(here)));
  auto other = device->pin(std::as_writable_bytes(std::span(got)));
  REQUIRE(pin != nullptr);
  device->put(std::as_bytes(std::span(here)), there.span());
  device->wait();
  const std::vector<float> first = here;
  std::ranges::fill(here, -1.0F);
  device->put(std::as_bytes(std::span(here).subspan(10, 20)), there.span().subspan(500, 20));
  device->fetch(there.span(), std::as_writable_bytes(std::span(got)));
  device->wait();
  std::vector<float> expected = first;
  std::fill_n(expected.begin() + 500, 20, -1.0F);
  CHECK(got == expected);
  pin.reset();
  device->put(std::as_bytes(std::span(here)), there.span());
  std::ranges::fill(here, 5.0F);  // read when the call has returned: it is pinned no longer
  CHECK(fetched(*device, there.span()) == std::vector<float>(n, -1.0F));
}

TEST_CASE("a change that is not finite is refused by position, on the processor and on a device") {
  Layout layout;
  layout.append("a", {40});
  layout.append("b", {3000});
  Config section = Config::from_text("selector: {name: topk, density: 0.1}");
  const Sparsifier sparsifier = read_sparsifier(section, {});
  for (const auto& device : {processor(), replica_device(0), replica_device(1, 100)}) {
    FloatBlock x = device->block(layout.size()), copy = device->block(layout.size());
    const auto selection = device->select_changes(layout, sparsifier);
    std::vector<float> values(layout.size(), 1.0F), kept;
    std::vector<std::uint32_t> positions;
    values[40 + 2345] = INFINITY;
    device->put(std::as_bytes(std::span(values)), x.span());
    for (SegmentId s = 0; s < 2; ++s)
      selection->begin(s, x.segment(layout[s]), copy.segment(layout[s]), kept_count(0.1, layout[s].length), 0.0F);
    device->wait();
    selection->take(0, positions, kept);
    CHECK(positions == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(kept == std::vector<float>(4, 1.0F));
    CHECK_THROWS_WITH_AS(selection->take(1, positions, kept), doctest::Contains("2345"), DivergenceError);
    values[40 + 2345] = 2.0F;
    device->put(std::as_bytes(std::span(values)), x.span());
    selection->begin(1, x.segment(layout[1]), copy.segment(layout[1]), 1, 0.0F);
    device->wait();
    selection->take(1, positions, kept);
    CHECK(positions == std::vector<std::uint32_t>{2345});
    CHECK(kept == std::vector<float>{2.0F});
  }
}

}  // namespace
}  // namespace hearsay::exchange_test
