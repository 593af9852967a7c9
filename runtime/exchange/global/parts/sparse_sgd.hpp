#pragma once
// What S-SGD with a sparse sum is made of, whatever the collective:
//   finish:  r ← r + g;  v ← T(r);  r ← r − v;  (s, returned) ← collective(v);  r ← r + returned;  g ← s / P
// An algorithm is its collective.
#include <functional>
#include <memory>
#include <string_view>

#include "runtime/collectives/gather.hpp"
#include "runtime/collectives/gathered_sum.hpp"
#include "runtime/collectives/sparse_vector.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/exchange/global/parts/error_feedback.hpp"
#include "runtime/replica/block_selection.hpp"

namespace hearsay {

/// Adds every rank's sparse vector. Runs on the communication thread.
class SparseCollective {
 public:
  virtual ~SparseCollective() = default;
  /// `k` is the number of entries that the density asks for, the same on every rank.
  virtual SparseSum sum(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k) = 0;
  virtual std::vector<Share> shares() const { return {}; }
  virtual void state(Archive& archive) { static_cast<void>(archive); }
  /// How many lists as long as the longest contribution are in memory at once, messages included.
  virtual std::size_t lists(int ranks) const = 0;
  /// Whether `total` and what all ranks are returned are together what they gave.
  virtual bool keeps_mass() const { return true; }
  /// Bytes that all ranks together may send in one iteration; `message` is the longest that one rank's k entries make.
  virtual std::size_t worst_case_bytes(int ranks, std::size_t message) const = 0;
  virtual ExchangeCost cost(SparseShape shape, const CostAssumptions& assumptions) const = 0;
};

/// The collective of an all-gather, and what every rank then makes of the sum that all of them have; nothing if empty.
std::unique_ptr<SparseCollective> gathered_collective(std::function<void(SparseSum& found, std::size_t k)> then = {});
/// The same with a sum that is P times the mean over the ranks that have sent a value: it does not keep mass.
std::unique_ptr<SparseCollective> mean_of_senders_collective();

/// What those of these algorithms choose that add whole residuals: the largest values of the model, or those that are
/// news.
inline constexpr SparsifierDefaults of_sums{.selector = "topk", .per_segment = false, .news = true};

/// The sections that all of these algorithms read: `exchange.feedback` and `sparsify`.
struct SparseSgdSettings {
  SparseSgdSettings(Config& exchange, Config& root, const SparsifierDefaults& defaults);

  /// The longest message of the later iterations' k entries, out of `values`; where a budget says so, one of its bits.
  SparseShape shape(const Layout& layout, int ranks) const;

  FeedbackOptions feedback;
  std::shared_ptr<const Sparsifier> sparsifier;  ///< to ask; every exchange selects with a copy
};

/// Every rank takes over as many values of a residual that all ranks owe together.
void take_own_part(ErrorFeedback& feedback, const Peers& peers, std::span<const float> sum);

/// The client's half of an iteration: r ← r + g, with momentum and clipping as `feedback` says, and what of r to send;
/// in one pass over memory where nothing but the sum is wanted.
void accumulate_and_select(ErrorFeedback& feedback, BlockSelection& selection, std::span<const float> g, double density,
                           std::vector<std::uint32_t>& positions);

/// Builds the exchange around a collective.
std::unique_ptr<Exchange> make_sparse_sgd(const ExchangeContext& context, const SparseSgdSettings& settings,
                                          std::unique_ptr<SparseCollective> collective);
/// The plan of an exchange whose collective `make()` makes.
std::unique_ptr<ExchangePlan> plan_sparse_sgd(SparseSgdSettings settings,
                                              std::function<std::unique_ptr<SparseCollective>()> make);

}  // namespace hearsay
