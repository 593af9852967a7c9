#include "runtime/exchange/cost/cost.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace hearsay {

namespace {

/// For messages of `bytes`: between two measured lengths by their logarithms, beyond them the nearest.
double load_factor(const std::vector<Load>& loads, Pattern pattern, double bytes) {
  if (loads.empty() || pattern == Pattern::one_way) return 1.0;
  const auto factor = [pattern](const Load& load) {
    return pattern == Pattern::crossing ? load.crossing : load.shifting;
  };
  const auto above = std::ranges::lower_bound(loads, bytes, {}, &Load::bytes);
  if (above == loads.begin()) return factor(loads.front());
  if (above == loads.end()) return factor(loads.back());
  const Load& below = *std::prev(above);
  const double part = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return std::lerp(factor(below), factor(*above), part);
}

double seconds_under_load(const ExchangeCost& cost, const CommunicationCost& messages, const AlphaBeta& link,
                          const Network& network) {
  if (messages.messages == 0.0) return 0.0;
  const double mean_bytes = bytes_per_word * messages.words / messages.messages;
  const double factor =
      load_factor(network.loads, cost.pattern, cost.message_bytes > 0.0 ? cost.message_bytes : mean_bytes);
  return messages.seconds({.alpha_s = link.alpha_s, .beta_s = factor * link.beta_s});
}

}  // namespace

LocalWork operator+(const LocalWork& a, const LocalWork& b) {
  return {.moved_bytes = a.moved_bytes + b.moved_bytes,
          .read_bytes = a.read_bytes + b.read_bytes,
          .selected_values = a.selected_values + b.selected_values,
          .kept_entries = a.kept_entries + b.kept_entries,
          .merged_entries = a.merged_entries + b.merged_entries};
}

LocalWork operator*(double times, const LocalWork& work) {
  return {.moved_bytes = times * work.moved_bytes,
          .read_bytes = times * work.read_bytes,
          .selected_values = times * work.selected_values,
          .kept_entries = times * work.kept_entries,
          .merged_entries = times * work.merged_entries};
}

LocalWork selection_work(double values, double kept, double reads) {
  if (reads == 0.0) return {.selected_values = values, .kept_entries = kept};
  constexpr double words_of_sum = 3.0;  // two read, one written
  return {.moved_bytes = bytes_per_word * words_of_sum * values,
          .read_bytes = bytes_per_word * reads * values,
          .kept_entries = kept};
}

double communication_s(const ExchangeCost& cost, const Network& network) {
  return seconds_under_load(cost, cost.inside, network.inside, network) +
         seconds_under_load(cost, cost.between, network.between, network);
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
