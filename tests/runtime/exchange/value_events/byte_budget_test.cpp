// A budget of bytes: what a run may send, what it sends anyway, and which settings a budget stands for.
#include "runtime/exchange/neighbour/byte_budget.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/configuration.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::byte_budget_test {
namespace {

using namespace test;

Layout two_segments() {
  Layout layout;
  layout.append("first", {40, 50});
  layout.append("second", {300});
  return layout;
}

std::string within(double bytes, const std::string& schedule = "lockstep") {
  return ring + std::string("exchange: {name: eventgrad, schedule: ") + schedule + ", bytes: " + std::to_string(bytes) +
         "}\n";
}

constexpr Iteration iterations = 200;

JobOutcome train(const std::string& yaml) {
  const Layout layout = two_segments();
  const reference::Quadratic problem(layout, 4, 3);
  return train_locally(yaml, layout, problem.initial(), problem, {.ranks = 4, .iterations = iterations});
}

double bytes_of(const RankOutcome& rank) {
  return static_cast<double>(rank.totals.payload_bytes + rank.totals.index_bytes + rank.totals.header_bytes);
}

TEST_CASE("a run that would send more sends its budget, and at most a packet an edge more") {
  const double dense = 4.0 * static_cast<double>(two_segments().size()) * 2 * iterations;
  const double packets = 2 * (4.0 * static_cast<double>(two_segments().size()) + 200);
  const std::string always = "trigger: {name: always}\n", sparse = "sparsify: {selector: {name: topk, density: 0.3}}\n";
  for (const std::string schedule : {"lockstep", "asynchronous"})
    for (const std::string& rest : {always, always + sparse})
      for (const double bytes : {0.04, 0.15}) {
        CAPTURE(schedule);
        CAPTURE(rest);
        CAPTURE(bytes);
        const JobOutcome job = train(within(bytes, schedule) + rest);
        for (const RankOutcome& rank : job.ranks) {
          CHECK(bytes_of(rank) <= bytes * dense + packets);
          if (schedule == "lockstep") CHECK(bytes_of(rank) >= 0.9 * bytes * dense);
        }
      }
}

TEST_CASE("a run that would send less is the run without a budget") {
  const std::string trigger = "trigger: {name: adaptive, horizon: 3}\n";
  const JobOutcome limited = train(within(1.0) + trigger);
  CHECK(limited.hashes() == train(ring + std::string("exchange: {name: eventgrad}\n") + trigger).hashes());
  CHECK(limited.hashes() != train(within(0.1) + trigger).hashes());
}

TEST_CASE("a budget for less than packets that say nothing is refused, with one that is enough") {
  const auto always = [](double bytes) { return within(bytes) + "trigger: {name: always}\n"; };
  CHECK_THROWS_WITH_AS(train(always(0.001)), doctest::Contains("exchange.bytes: 0.001"), ConfigError);
  CHECK_THROWS_WITH_AS(train(always(0.001)), doctest::Contains("take 0.00703 or more"), ConfigError);
  CHECK_NOTHROW(train(always(0.00703)));
}

TEST_CASE("where single values are events nobody rests: only settings are chosen") {
  const std::string step = "sparsify: {quantiser: {step: 0.001}}\n";
  const double dense = 4.0 * static_cast<double>(two_segments().size()) * 2 * iterations;
  for (const RankOutcome& rank : train(within(0.01) + step).ranks) CHECK(bytes_of(rank) > 0.1 * dense);
}

TEST_CASE("fewer bytes are a longer horizon, and never a narrower dead zone") {
  double horizon = 1e9, zone = 1.0;
  for (double bytes = 0.001; bytes < 0.1; bytes *= 1.1) {
    const EventSettings its = settings_for(bytes);
    CHECK(its.horizon <= horizon);
    CHECK(its.dead_zone <= zone);
    CHECK(its.strength < 2 * its.dead_zone);  // the bound of copies of an edge
    horizon = its.horizon, zone = its.dead_zone;
  }
  CHECK(settings_for(0.0132).horizon == doctest::Approx(9.0));
}

/// The configuration in force.
std::string read(const std::string& yaml) {
  Config root = Config::from_text(yaml);
  static_cast<void>(plan_exchange(root));
  root.document().throw_if_invalid();
  return root.document().dump();
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a budget chooses trigger, form and settings; what is said in the configuration counts") {
  const std::string chosen = read("exchange: {bytes: 0.0132}");
  for (const char* key : {"name: value_events", "copies: edge", "name: difference", "gamma: 1", "strength: 0.7",
                          "name: dead_zone", "horizon: 9", "dead_zone: 0.6"})
    CHECK_MESSAGE(says(chosen, key), chosen);
  CHECK(says(read("exchange: {bytes: 0.0132, copies: shared}"), "copies: shared"));
  CHECK(says(read("exchange: {bytes: 0.0132}\nsparsify: {quantiser: {horizon: 12}}"), "horizon: 12"));
  CHECK(says(read("exchange: {bytes: 0.0132, schedule: asynchronous}"), "copies: shared"));
  const std::string others = read("exchange: {bytes: 0.0132}\ntrigger: {name: adaptive}");
  CHECK(says(others, "copies: shared"));
  CHECK(says(others, "name: arrival"));
  CHECK(read(chosen) == chosen);
}

}  // namespace
}  // namespace hearsay::byte_budget_test
