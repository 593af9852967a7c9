// Sums of sparse vectors, messages of b bytes:
//   all-gather of top-k      L α + (P − 1) b/4 β                   (topk, gtopk_naive)
//   gTop-k tree              2 L (α + b/4 β)
//   gTop-k butterfly         log2 P (α + b/4 β); if P is no power of two, ⌊log2 P⌋ + 2 instead of log2 P
// bruck1997efficient, shi2019gtopk (table I).
#include "runtime/exchange/cost/cost.hpp"

namespace hearsay {
namespace {

constexpr double passes_of_mean = 2.0;  // g is overwritten with zeros and the sum; a cache reads what is written

double words_of(std::size_t bytes) { return static_cast<double>(bytes) / bytes_per_word; }

LocalWork selection(const SparseShape& shape) {
  const auto n = static_cast<double>(shape.values);
  return selection_work(n, static_cast<double>(shape.k), shape.selector_reads) +
         LocalWork{.moved_bytes = passes_of_mean * bytes_per_word * n};
}

}  // namespace

CommunicationCost gather_cost(int ranks, std::size_t message_bytes) {
  return {.messages = rounds(ranks), .words = (ranks - 1) * words_of(message_bytes)};
}

CommunicationCost tree_cost(int ranks, std::size_t message_bytes) {
  const double messages = 2.0 * rounds(ranks);
  return {.messages = messages, .words = messages * words_of(message_bytes)};
}

CommunicationCost butterfly_cost(int ranks, std::size_t message_bytes) {
  const auto p = static_cast<unsigned>(ranks);
  const double core = static_cast<double>(std::bit_width(p) - 1);
  const double messages = std::has_single_bit(p) ? core : core + 2.0;
  return {.messages = messages, .words = messages * words_of(message_bytes)};
}

ExchangeCost gathered_cost(const SparseShape& shape, const CostAssumptions& assumptions) {
  const CommunicationCost messages = gather_cost(shape.ranks, shape.message_bytes);
  ExchangeCost cost = flat_cost(messages, messages.words * bytes_per_word, Pattern::shifting, assumptions);
  cost.local = selection(shape);
  cost.local.merged_entries = rounds(shape.ranks) * shape.ranks * static_cast<double>(shape.k);
  return cost;
}

ExchangeCost gtopk_cost(const SparseShape& shape, bool butterfly, const CostAssumptions& assumptions) {
  const auto p = static_cast<unsigned>(shape.ranks);
  const auto b = static_cast<double>(shape.message_bytes);
  const double core = std::bit_floor(p), core_rounds = static_cast<double>(std::bit_width(p) - 1);
  const double all_messages = butterfly ? core * core_rounds + 2.0 * (p - core) : 2.0 * (p - 1.0);
  ExchangeCost cost = flat_cost(
      butterfly ? butterfly_cost(shape.ranks, shape.message_bytes) : tree_cost(shape.ranks, shape.message_bytes),
      all_messages * b / p, butterfly ? Pattern::crossing : Pattern::one_way, assumptions);
  cost.local = selection(shape);
  cost.local.merged_entries = 2.0 * rounds(shape.ranks) * static_cast<double>(shape.k);
  return cost;
}

}  // namespace hearsay
