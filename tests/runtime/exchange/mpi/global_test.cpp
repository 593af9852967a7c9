// The laws of the global path over MPI, with communication threads: nothing is lost, everybody gets the same.
#include <doctest/doctest.h>

#include <cstring>

#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/transport.hpp"
#include "tests/runtime/exchange/global_job.hpp"
#include "tests/support/announce.hpp"

namespace hearsay::global_test {
namespace {

using namespace test;

/// One rank of a job of its own; Σ over ranks of what it put in and still owes. Collective.
struct Outcome {
  std::vector<double> applied, put_in, owed;
  std::vector<std::uint64_t> hashes;  ///< of the aggregated gradients, by iteration
};

Outcome train(const std::string& yaml, Iteration iterations) {
  const GlobalPlan plan(yaml);
  mpi::Communicator world;
  Parameters replica(reference::small_layout());
  Participant member(std::make_unique<mpi::Transport>(world.handle()),
                     std::make_shared<const Topology>(complete_topology(world.size())), *plan, replica);
  const std::size_t n = replica.layout.size();
  Outcome outcome{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n), {}};
  const auto g = replica.gradients.span();
  for (Iteration k = 0; k < iterations; ++k) {
    member.start(k);
    integer_gradient(world.rank(), k, g);
    for (std::size_t i = 0; i < n; ++i) outcome.put_in[i] += static_cast<double>(g[i]);
    announce_gradients(member);
    member.finish(k);
    outcome.hashes.push_back(replica_hash(g));
    for (std::size_t i = 0; i < n; ++i) outcome.applied[i] += times_ranks(g[i], static_cast<std::size_t>(world.size()));
    member.stepped(k);
  }
  std::vector<float> residual(n);
  add_residual(member.exchange(), residual);
  for (std::size_t i = 0; i < n; ++i) outcome.owed[i] = static_cast<double>(residual[i]);
  member.leave();
  world.sum(outcome.put_in);
  world.sum(outcome.owed);
  return outcome;
}

TEST_CASE("every synchronous algorithm over MPI keeps the mass and gives everybody the same") {
  mpi::Communicator world;
  const std::string sparsify = "sparsify: {selector: {name: topk, density: 0.05}, codec: {name: delta}}\n";
  for (const std::string& yaml :
       {std::string("exchange: {name: allreduce, bucket_bytes: 200}\n"),
        std::string("exchange: {name: allreduce, method: library}\n"), "exchange: {name: topk}\n" + sparsify,
        "exchange: {name: gtopk_naive}\n" + sparsify, "exchange: {name: gtopk, merge: tree}\n" + sparsify,
        "exchange: {name: gtopk, merge: butterfly, residual: owner}\n" + sparsify,
        "exchange: {name: lkgs}\n" + sparsify, "exchange: {name: hitopk}\n" + sparsify,
        "exchange: {name: hitopk, node_size: 1}\n" + sparsify}) {
    CAPTURE(yaml);
    const Outcome outcome = train(yaml, 6);
    for (std::size_t i = 0; i < outcome.put_in.size(); ++i)
      REQUIRE(outcome.applied[i] + outcome.owed[i] == outcome.put_in[i]);
    const auto all = world.gather(std::as_bytes(std::span(outcome.hashes)));
    for (const auto& hashes : all) CHECK(hashes == all.front());
  }
}

}  // namespace
}  // namespace hearsay::global_test
