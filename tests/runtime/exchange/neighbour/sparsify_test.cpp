// What the section `sparsify:` changes of an exchange on a graph, and what it must not change.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::sparsify_test {
namespace {

using namespace test;

constexpr const char* adaptive = "trigger: {name: adaptive, horizon: 1.7, warmup_iterations: 3}\n";
constexpr const char* every_iteration = "trigger: {name: always}\n";

JobOutcome train(const std::string& mixing, const std::string& sparsify, Ranks run = Ranks::one_thread) {
  const Layout layout = reference::small_layout();
  const reference::Quadratic problem(layout, 4, 3);
  const std::string yaml = ring + eventgrad(mixing) + adaptive + "sparsify: " + sparsify + "\n";
  return train_locally(yaml, layout, problem.initial(), problem, {.ranks = 4, .run = run});
}

/// Only mixing, from replicas of normally distributed values of their own.
JobOutcome mix(const std::string& mixing, const std::string& trigger, const std::string& sparsify,
               Iteration iterations) {
  const Layout layout = reference::small_layout();
  const std::vector<float> initial(layout.size(), 0.0F);
  const ZeroGradient none;
  const std::string yaml = ring + eventgrad(mixing) + trigger + "sparsify: " + sparsify + "\n";
  const auto scatter = [](LocalRank& rank) {
    Random random(stream_seed(8, "start", static_cast<std::uint64_t>(rank.rank())));
    for (float& v : rank.replica.values.span()) v = static_cast<float>(random.normal());
  };
  return train_locally(yaml, layout, initial, none, {.ranks = 4, .iterations = iterations, .prepare = scatter});
}

double mean_value(const JobOutcome& job, std::size_t e) {
  double sum = 0.0;
  for (const RankOutcome& rank : job.ranks) sum += rank.x[e];
  return sum / static_cast<double>(job.ranks.size());
}

/// The largest distance of any value of any rank from the mean over ranks.
double disagreement(const JobOutcome& job) {
  double largest = 0.0;
  for (std::size_t e = 0; e < job.ranks.front().x.size(); ++e) {
    const double mean = mean_value(job, e);
    for (const RankOutcome& rank : job.ranks) largest = std::max(largest, std::abs(rank.x[e] - mean));
  }
  return largest;
}

TEST_CASE("coders write the same differently") {
  for (const auto& mixing : mixing_choices()) {
    CAPTURE(mixing.yaml);
    const JobOutcome plain = train(mixing.yaml, "{selector: {name: topk, density: 0.1}, codec: {name: plain}}");
    for (const std::string coder : {"delta", "bitmap", "smallest"}) {
      CAPTURE(coder);
      const JobOutcome other =
          train(mixing.yaml, "{selector: {name: topk, density: 0.1}, codec: {name: " + coder + "}}");
      CHECK(other.hashes() == plain.hashes());
      CHECK(other.totals().payload_bytes == plain.totals().payload_bytes);
      CHECK(other.totals().index_bytes < plain.totals().index_bytes);
    }
  }
}

TEST_CASE("below dense_below, and at every density 1 of the schedule, whole segments travel") {
  std::string ones = "1";
  for (int epoch = 1; epoch < 60; ++epoch) ones += ", 1";  // an epoch is one iteration here
  for (const auto& mixing : mixing_choices()) {
    CAPTURE(mixing.yaml);
    const JobOutcome dense = train(mixing.yaml, whole);
    const JobOutcome sparse = train(mixing.yaml, a_tenth);
    const JobOutcome small = train(mixing.yaml, "{selector: {name: topk, density: 0.1, dense_below: 1000}}");
    const JobOutcome early =
        train(mixing.yaml, "{selector: {name: topk, density: 0.1}, density_schedule: [" + ones + "]}");
    const JobOutcome some = train(mixing.yaml, "{selector: {name: topk, density: 0.1, dense_below: 65}}");
    const JobOutcome first = train(mixing.yaml, "{selector: {name: topk, density: 0.1}, density_schedule: [1, 1]}");
    for (const JobOutcome* same : {&small, &early}) {
      CHECK(same->hashes() == dense.hashes());
      CHECK(same->totals().payload_bytes == dense.totals().payload_bytes);
      CHECK(same->totals().index_bytes == 0);
    }
    for (const JobOutcome* between : {&some, &first}) {
      CHECK(between->hashes() != dense.hashes());
      CHECK(between->hashes() != sparse.hashes());
      CHECK(between->totals().payload_bytes < dense.totals().payload_bytes);
      CHECK(between->totals().payload_bytes > sparse.totals().payload_bytes);
    }
  }
}

TEST_CASE("two runs, and runs on any kind of thread, are one") {
  for (const std::string& sparsify : every_kind_of_body()) {
    CAPTURE(sparsify);
    const JobOutcome first = train("{name: difference, gamma: 0.2}", sparsify);
    CHECK(train("{name: difference, gamma: 0.2}", sparsify).hashes() == first.hashes());
    CHECK(train("{name: difference, gamma: 0.2}", sparsify, Ranks::threads_with_communication_threads).hashes() ==
          first.hashes());
  }
}

TEST_CASE("rounding moves the mean of difference and arrival as little as no rounding") {
  constexpr const char* sometimes =
      "trigger: {name: geometric, scale: 8, ratio: 0.8, measure: norm, warmup_iterations: 0}\n";
  for (const char* mixing : {"{name: difference, gamma: 0.2}", "{name: arrival}"}) {
    for (const std::string& sparsify : every_kind_of_body()) {
      CAPTURE(mixing);
      CAPTURE(sparsify);
      const JobOutcome before = mix(mixing, sometimes, sparsify, 0);
      const JobOutcome after = mix(mixing, sometimes, sparsify, 40);
      CHECK(after.totals().events > 0);
      CHECK(after.hashes() != before.hashes());
      for (std::size_t e = 0; e < before.ranks.front().x.size(); ++e)
        CHECK(std::abs(mean_value(after, e) - mean_value(before, e)) <= 1e-5);
    }
  }
}

// Changes shrink as ranks agree, and rounding with them; a sender that rounded values would end at a distance. The
// coarser the rounding, the smaller γ must be. The smallest magnitude is no such rounding: one tiny value among those
// kept and the large ones hardly move.
TEST_CASE("what rounding leaves out is sent later: ranks come to agree far below the rounding of a value") {
  for (const std::string& sparsify : rounding_choices()) {
    CAPTURE(sparsify);
    if (sparsify.find("threshold") != std::string::npos) continue;
    const bool coarse = sparsify.find("_bit") != std::string::npos;
    const std::string mixing = coarse ? "{name: difference, gamma: 0.05}" : "{name: difference, gamma: 0.2}";
    CHECK(disagreement(mix(mixing, every_iteration, sparsify, 0)) > 1.0);
    CHECK(disagreement(mix(mixing, every_iteration, sparsify, coarse ? 1000 : 150)) < 1e-4);
  }
}

TEST_CASE("half precision is two bytes a value, integers one and a scale, without positions") {
  const auto messages = [](const JobOutcome& job) { return static_cast<double>(job.totals().messages); };
  const double values = reference::small_layout().size() / 4.0;  // a message's, on average over the segments
  const JobOutcome half = mix("{name: stale}", every_iteration, "{quantiser: {name: fp16}}", 5);
  CHECK(static_cast<double>(half.totals().payload_bytes) == messages(half) * 2 * values);
  CHECK(half.totals().index_bytes == 0);
  const JobOutcome integers = mix("{name: stale}", every_iteration, "{quantiser: {name: int8}}", 5);
  CHECK(static_cast<double>(integers.totals().payload_bytes) == messages(integers) * (values + 4));
}

TEST_CASE("a row is the first dimension of a tensor, a vector is one row") {
  // one_bit: 8 bytes a row that has values, and a bit a value. Rows: 1, 1, 8 and 3; values: 1, 7, 64 and 300.
  const std::string rows = "{quantiser: {name: one_bit, centre: row_mean}}";
  const JobOutcome job = mix("{name: stale}", every_iteration, rows, 1);
  const std::vector<std::uint64_t> one_message{8 + 1, 8 + 1, 8 * 8 + 8, 8 * 3 + 38};
  for (const RankOutcome& rank : job.ranks) {
    for (std::size_t s = 0; s < one_message.size(); ++s) CHECK(rank.segment_payload_bytes[s] == 2 * one_message[s]);
  }
}

TEST_CASE("a sparsifier that an exchange on a graph cannot have is refused") {
  for (const std::string bad : {"{selector: {name: topk, scope: global}}", "{density_schedule: [0.5]}"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(Plan(ring + eventgrad("{name: stale}") + "sparsify: " + bad + "\n"), ConfigError);
  }
}

}  // namespace
}  // namespace hearsay::sparsify_test
