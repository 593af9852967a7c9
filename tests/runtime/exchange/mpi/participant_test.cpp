// What a participant promises to a loop of one's own: its communicator, its memory, its start and its end.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/mpi/transport.hpp"

namespace hearsay::participant_test {
namespace {

Layout two_segments() {
  Layout layout;
  layout.append("a", {3, 2});
  layout.append("b", {2});
  return layout;
}

/// Whole numbers, other ones on every rank.
std::vector<float> numbers(int rank, float scale) {
  std::vector<float> x;
  for (int i = 0; i < 8; ++i) x.push_back(scale * static_cast<float>(1 + i + 10 * rank));
  return x;
}

TEST_CASE("x and g are the lender's memory; all ranks begin with rank 0's x and end with the mean of all gradients") {
  mpi::Communicator world;
  const ParticipantPlan plan(Config::from_text("exchange: {name: allreduce}"));
  std::vector<float> x = numbers(world.rank(), 1.0F), g(8);
  Parameters replica(two_segments(), x, g);
  Participant member(std::make_unique<mpi::Transport>(world.handle()), plan.topology(world.size()), plan.exchange(),
                     replica);
  CHECK(x == numbers(0, 1.0F));
  member.start(0);
  std::ranges::copy(numbers(world.rank(), static_cast<float>(world.size())), g.begin());  // not another vector
  member.finish(0);
  std::vector<float> sum(8, 0.0F);
  for (int rank = 0; rank < world.size(); ++rank)
    for (std::size_t i = 0; i < 8; ++i) sum[i] += numbers(rank, 1.0F)[i];
  CHECK(g == sum);
  member.stepped(0);
  member.settle();
}

TEST_CASE("a block of another length is not borrowed") {
  std::vector<float> x(8), g(7);
  CHECK_THROWS_AS(Parameters(two_segments(), x, g), ConfigError);
}

TEST_CASE("without a common start, mixing keeps the mean of what the ranks began with") {
  mpi::Communicator world;
  const ParticipantPlan plan(Config::from_text("exchange: {name: dpsgd}"));
  std::vector<float> x(8, static_cast<float>(4 * world.rank())), g(8);
  Parameters replica(two_segments(), x, g);
  Participant member(std::make_unique<mpi::Transport>(world.handle()), plan.topology(world.size()), plan.exchange(),
                     replica, {.start_from_rank_0 = false});
  for (Iteration k = 0; k < 200; ++k) {
    member.start(k);
    member.finish(k);
    member.stepped(k);
  }
  member.settle();
  for (const float value : x) CHECK(value == doctest::Approx(2.0 * (world.size() - 1)).epsilon(1e-4));
}

TEST_CASE("two participants of a rank, on communicators of their own, do not hear each other") {
  mpi::Communicator world, other;
  const ParticipantPlan plan(Config::from_text("exchange: {name: dpsgd}\ntopology: {graph: {name: complete}}"));
  std::vector<float> x(8, 1.0F), y(8, 5.0F), g(8);
  Parameters first(two_segments(), x, g), second(two_segments(), y, g);
  {
    // One after the other: MPI belongs to one communication thread at a time.
    Participant a(std::make_unique<mpi::Transport>(world.handle()), plan.topology(world.size()), plan.exchange(),
                  first);
    a.start(0), a.finish(0), a.stepped(0), a.settle();
  }
  Participant b(std::make_unique<mpi::Transport>(other.handle()), plan.topology(other.size()), plan.exchange(), second);
  b.start(0), b.finish(0), b.stepped(0), b.settle();
  CHECK(x == std::vector<float>(8, 1.0F));
  CHECK(y == std::vector<float>(8, 5.0F));
}

TEST_CASE("an MPI that is there already is adopted, and left as it was") {
  { const mpi::Environment adopted; }
  mpi::Communicator world;  // would fail after MPI_Finalize
  std::vector<double> one{1.0};
  world.sum(one);
  CHECK(one[0] == world.size());
}

TEST_CASE("what a participant counts stays when it has left") {
  mpi::Communicator world;
  const ParticipantPlan plan(Config::from_text("exchange: {name: dpsgd}"));
  std::vector<float> x(8), g(8);
  Parameters replica(two_segments(), x, g);
  Participant member(std::make_unique<mpi::Transport>(world.handle()), plan.topology(world.size()), plan.exchange(),
                     replica);
  member.start(0), member.finish(0), member.stepped(0), member.settle();
  member.leave();
  const std::size_t neighbours = member.edges().neighbourhood().neighbours.size();
  CHECK(member.ledger().totals().messages == 2 * neighbours);
  CHECK(member.ledger().totals().payload_bytes == 8 * sizeof(float) * neighbours);
}

}  // namespace
}  // namespace hearsay::participant_test
