// The memory that an exchange states beforehand, beside what it is seen to take.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "tests/runtime/exchange/global_job.hpp"
#include "tests/runtime/exchange/memory/counted.hpp"

namespace hearsay::kept_bytes_test {
namespace {

using namespace test;

Layout large_layout() {
  Layout layout;
  layout.append("a", {256, 384});
  layout.append("b", {200, 300});
  layout.append("c", {400});
  return layout;
}

/// The most bytes that a rank of the job has at once, by rank.
std::vector<std::size_t> taken(const ExchangePlan& plan, const Layout& layout, int ranks) {
  constexpr Iteration iterations = 5;
  const Topology topology = complete_topology(ranks);
  const Vector initial(layout.size(), 0.0F);
  std::vector<std::size_t> most(static_cast<std::size_t>(ranks));
  const LocalJob job{.topology = topology, .layout = layout, .initial = initial, .plan = plan};
  LocalWorld world(job);
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        begin_account();
        world.run(r, [&](LocalRank& rank) {
          const auto x = rank.replica.values.span(), g = rank.replica.gradients.span();
          Random random(stream_seed(3, "gradient", static_cast<std::uint64_t>(r)));
          for (Iteration k = 0; k < iterations; ++k) {
            rank.member.start(k);
            for (float& value : g) value = static_cast<float>(random.normal());
            announce_gradients(rank.member);
            rank.member.finish(k);
            for (std::size_t e = 0; e < x.size(); ++e) x[e] -= g[e];
            rank.member.stepped(k);
          }
        });
        most[static_cast<std::size_t>(r)] = most_on_account();
      });
  }
  world.rethrow();
  return most;
}

std::string news_of(const std::string& exchange, double bits) {
  return "exchange: " + exchange + "\nsparsify: {quantiser: {name: dead_zone, bits_per_value: " + std::to_string(bits) +
         "}}\n";
}

std::vector<std::string> lists_of_sums() {
  std::vector<std::string> all;
  for (const std::string exchange :
       {"{name: topk}", "{name: gtopk_naive}", "{name: gtopk, merge: butterfly}", "{name: gtopk, merge: tree}",
        "{name: sparseloco, local_steps: 2}", "{name: sparseloco, local_steps: 2, mean: senders}", "{name: demo}"}) {
    for (const std::string selector : {"{density: 0.01}", "{density: 0.1}"})
      all.push_back("exchange: " + exchange + "\nsparsify: {selector: " + selector + "}\n");
    for (const double bits : {0.05, 1.0}) all.push_back(news_of(exchange, bits));
  }
  for (const std::string keys : {"", ", delay_steps: 1", ", fragments: 2"})
    for (const double bits : {0.05, 1.0}) all.push_back(news_of("{name: diloco, local_steps: 4" + keys + "}", bits));
  return all;
}

// A tenth is allowed for what is small beside a block, and for messages that their receivers, threads as well, are late
// to take: they are on the sender's account.
TEST_CASE("a sum over all ranks states the memory that it takes, and not three times as much") {
  const Layout layout = large_layout();
  for (const int ranks : {1, 2, 5}) {
    const std::vector<std::size_t> without = taken(IdlePlan(0), layout, ranks);
    for (const std::string& yaml : lists_of_sums()) {
      CAPTURE(yaml);
      CAPTURE(ranks);
      const GlobalPlan plan(yaml);
      const std::size_t stated = plan->kept_bytes(layout, static_cast<std::size_t>(ranks - 1), ranks);
      const std::vector<std::size_t> with = taken(*plan, layout, ranks);
      const std::size_t seen = std::ranges::max(with) - std::ranges::min(without);
      CHECK(10 * stated >= 9 * seen);
      CHECK(stated <= 3 * seen);
    }
  }
}

}  // namespace
}  // namespace hearsay::kept_bytes_test
