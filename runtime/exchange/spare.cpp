#include "runtime/exchange/spare.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/exchange/segments.hpp"

namespace hearsay {
namespace {

constexpr double shortest_wait_s = 0.005;

}  // namespace

/// Ranks that take part leave when all is done and not before.
bool Spare::over() const {
  if (options_.interrupted()) return true;
  const FailureDetector& failures = *communication_.members().failures();
  const auto all = failures.participants();
  return std::ranges::none_of(all, [&](int rank) { return failures.is_here(rank); }) ||
         std::ranges::any_of(all, [&](int rank) { return failures.has_left(rank); });
}

std::optional<int> Spare::wait_for_vertex() {
  constexpr double of_timeout = 0.005;  // a vertex has been empty for the whole of the time-out
  const double between_looks_s =
      std::max(shortest_wait_s, of_timeout * std::chrono::duration<double>(options_.failure_timeout).count());
  const auto neighbours = [this](int of) {
    return options_.may_take(of) ? edges_.topology().neighbourhood(of).neighbours : std::vector<int>{};
  };
  std::optional<int> vertex;
  while (!over() && !(vertex = communication_.members().failures()->vertex_to_take(neighbours))) {
    communication_.pass_time(between_looks_s);
    communication_.engine().wake();  // throws what has ended communication
  }
  return vertex;
}

std::optional<std::span<const std::byte>> Spare::wait_for_model() {
  std::optional<std::span<const std::byte>> model;
  while (!over() && !(model = first_model())) {
    communication_.pass_time(shortest_wait_s);
    communication_.engine().wake();
    communication_.members().follow(edges_, communication_.engine());
  }
  return model;
}

/// What has come first, with all of a neighbour's model; nothing before the job's count has come, too.
std::optional<std::span<const std::byte>> Spare::first_model() const {
  const JobCount* const count = communication_.members().count();
  if (count != nullptr && !count->has_heard()) return std::nullopt;
  for (std::size_t edge = 0; edge < edges_.neighbourhood().neighbours.size(); ++edge)
    if (auto packet = edges_.begins(edge) ? communication_.mailbox().front(edge) : std::nullopt) return packet;
  return std::nullopt;
}

// The vertex is told to all before anything is sent: whoever hears of it writes where this process reads.
bool Spare::take_over(const ExchangePlan& plan) {
  const std::optional<int> vertex = wait_for_vertex();
  if (!vertex) return false;
  Members& members = communication_.members();
  members.sit(*vertex, edges_, communication_.engine());
  members.failures()->take(*vertex);
  communication_.engine().wake();
  const auto model = wait_for_model();
  if (!model) return false;
  take_whole_model(*model, replica_.layout, *vertex, *replica_.device, replica_.values.span());
  replica_.device->wait();
  build_(plan);
  members.failures()->take_part();
  communication_.engine().wake();
  joined_at_s_ = now_s();
  return true;
}

void Spare::note_mixing() {
  if (!mixes_since_s_) mixes_since_s_ = now_s();
}

double Spare::now_s() const { return std::chrono::duration<double>(communication_.ledger().since_start()).count(); }

}  // namespace hearsay
