#pragma once
// What S-SGD with a sparse sum is made of, whatever the collective:
//   finish:  r ← r + g;  v ← T(r);  r ← r − v;  (s, returned) ← collective(v);  r ← r + returned;  g ← s / P
// An algorithm is its collective.
#include <memory>
#include <string_view>

#include "runtime/algorithms/exchange.hpp"
#include "runtime/algorithms/global/error_feedback.hpp"
#include "runtime/collectives/gather.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/collectives/sparse_vector.hpp"

namespace hearsay {

/// What came out of a sparse sum over all ranks.
struct SparseSum {
  SparseVector total;     ///< the same bits on every rank
  SparseVector returned;  ///< what this rank's residual takes back
  SparseVector included;  ///< the part of its own contribution that is in `total`
};

/// Adds every rank's sparse vector. Runs on the communication thread.
class SparseCollective {
 public:
  virtual ~SparseCollective() = default;
  /// `k` is the number of entries that the density asks for, the same on every rank.
  virtual SparseSum sum(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k) = 0;
  virtual std::vector<Share> shares() const { return {}; }
  /// Bytes that all ranks together may send in one iteration; `message` is the longest that one rank's k entries make.
  virtual std::size_t worst_case_bytes(int ranks, std::size_t message) const = 0;
  virtual ExchangeCost cost(SparseShape shape, const CostAssumptions& assumptions) const = 0;
};

/// Sum of all members' vectors by an all-gather, pairwise in the order of the group. Cost: that of `all_gather`.
SparseSum gathered_sum(const Group& group, const SparseVector& own, const SparseWire& wire);

/// The sections that all of these algorithms read: `exchange.feedback` and `sparsify`; `sparsify_default` is the
/// selector.
struct SparseSgdSettings {
  /// With `scope_is_fixed` there is no key `sparsify.selector.scope`: the algorithm says where it selects.
  SparseSgdSettings(Config& exchange, Config& root, std::string_view default_selector = "topk",
                    bool scope_is_fixed = false);

  /// The longest message of the later iterations' k entries, out of `values`.
  SparseShape shape(const Layout& layout, int ranks) const;

  FeedbackOptions feedback;
  Config sparsify_section;
  Sparsifier read() const;  ///< a Sparsifier of its own for every exchange
  std::string_view default_selector;
  bool scope_is_fixed;
};

/// Lengths of selections and positions of a whole replica.
class BlockSelection {
 public:
  BlockSelection(const Sparsifier& sparsifier, const Layout& layout) : sparsifier_(sparsifier), layout_(layout) {}
  /// Entries that a density asks for: Σ over segments where the scope is the segment.
  std::size_t count(double density) const;
  /// Positions in the block to keep, ascending. Throws DivergenceError naming the segment if a value is not finite.
  void select(std::span<const float> block, double density, std::vector<std::uint32_t>& positions);
  /// block ← block + scale · addend, then `select`; in one pass over memory where the selector can.
  void add_and_select(std::span<float> block, std::span<const float> addend, float scale, double density,
                      std::vector<std::uint32_t>& positions);

 private:
  bool one_run() const;
  void select_block(std::span<const float> block, double density, std::vector<std::uint32_t>& positions);
  void append_segment(std::span<const float> block, const Segment& segment, std::size_t k,
                      std::vector<std::uint32_t>& positions);

  const Sparsifier& sparsifier_;
  const Layout& layout_;
  std::vector<std::uint32_t> scratch_;
  std::vector<float> packed_;
};

/// The client's half of an iteration: r ← r + g, with momentum and clipping as `feedback` says, and what of r to send; in
/// one pass over memory where nothing but the sum is wanted.
void accumulate_and_select(ErrorFeedback& feedback, BlockSelection& selection, std::span<const float> g, double density,
                           std::vector<std::uint32_t>& positions);

/// Ends of the rows of all tensors in the block, for quantisers that go by rows: a row has the same first index.
std::vector<std::uint32_t> row_ends(const Layout& layout);
/// The same for a part of the block, counted from its start; a row that is cut ends, or goes on, at the cut.
std::vector<std::uint32_t> row_ends(const Layout& layout, const Part& part);

/// Builds the exchange around a collective.
std::unique_ptr<Exchange> make_sparse_sgd(const ExchangeContext& context, const SparseSgdSettings& settings,
                                          std::unique_ptr<SparseCollective> collective);
/// The plan of an exchange whose collective `make()` makes.
std::unique_ptr<ExchangePlan> plan_sparse_sgd(SparseSgdSettings settings,
                                              std::function<std::unique_ptr<SparseCollective>()> make);

}  // namespace hearsay
