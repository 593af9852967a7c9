#include "runtime/cost/cost.hpp"

#include <algorithm>

#include "runtime/cost/rounds.hpp"

namespace hearsay {

namespace {

AlphaBeta loaded(const AlphaBeta& link, const Network& network, Pattern pattern) {
  const double factor = pattern == Pattern::crossing   ? network.crossing
                        : pattern == Pattern::shifting ? network.shifting
                                                       : 1.0;
  return {.alpha_s = link.alpha_s, .beta_s = factor * link.beta_s};
}

}  // namespace

LocalWork operator+(const LocalWork& a, const LocalWork& b) {
  return {.moved_bytes = a.moved_bytes + b.moved_bytes,
          .selected_values = a.selected_values + b.selected_values,
          .kept_entries = a.kept_entries + b.kept_entries,
          .merged_entries = a.merged_entries + b.merged_entries};
}

LocalWork operator*(double times, const LocalWork& work) {
  return {.moved_bytes = times * work.moved_bytes,
          .selected_values = times * work.selected_values,
          .kept_entries = times * work.kept_entries,
          .merged_entries = times * work.merged_entries};
}

LocalWork selection_work(double values, double kept, double reads) {
  if (reads == 0.0) return {.selected_values = values, .kept_entries = kept};
  constexpr double words_of_sum = 3.0;  // two read, one written
  return {.moved_bytes = bytes_per_word * (words_of_sum + reads) * values, .kept_entries = kept};
}

double communication_s(const ExchangeCost& cost, const Network& network) {
  return cost.inside.seconds(loaded(network.inside, network, cost.pattern)) +
         cost.between.seconds(loaded(network.between, network, cost.pattern));
}

double iteration_s(const ExchangeCost& cost, const Network& network, double compute_s) {
  const double local = cost.local.seconds(network);
  if (!cost.waits) return compute_s + local;
  const double messages = communication_s(cost, network);
  return local + (cost.overlaps ? std::max(compute_s, messages) : compute_s + messages);
}

ExchangeCost flat_cost(const CommunicationCost& messages, double sent_bytes, Pattern pattern,
                       const CostAssumptions& assumptions) {
  ExchangeCost cost{.sent_bytes = sent_bytes, .pattern = pattern};
  (assumptions.hosts > 1 ? cost.between : cost.inside) = messages;
  return cost;
}

}  // namespace hearsay
