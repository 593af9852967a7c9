// Global Top-k S-SGD: the k largest of the sum of all ranks' top-k, found by merging two at a time.
//   r ← r + g;  v_i ← top_k(r);  r ← r − v_i;  s_k, returned_i ← gTopKAllReduce(v);  r ← r + returned_i;  g ← s_k / P
// shi2019gtopk, Algorithms 3 and 4.
// Deviates from the paper in: g ← s_k / P, as its Algorithm 2, where Algorithm 4 applies s_k, P times the step; any
// number of ranks; `merge: butterfly` needs half its messages and bytes; with
// `residual: merger` or `owner` no mass is lost (the paper's rule, `published`, loses what an inner merge cuts off when
// its position comes back from another subtree; `lost_mass_fraction` in the metrics says how much); exactly k values.
// With the quantiser `dead_zone` what is news is merged (sparsify/quantisers/sum_step.hpp), k being how many values the
// budget pays for; a merged sum is written in a step of its own values, and who writes it keeps the remainders.
// Cost, entries of 8 bytes with the plain codec, L = ⌈log2 P⌉: `tree`: rank 0 receives L and sends L messages of k
// entries; `butterfly`: every rank sends and receives L messages of k entries (one more if P is not a power of two);
// memory: one block of residuals; time: one pass for r + g, the selector's passes, L merges of 2k entries.
#include <bit>

#include "runtime/collectives/gtopk.hpp"
#include "runtime/exchange/global/parts/sparse_sgd.hpp"

namespace hearsay {
namespace {

struct GtopkSettings {
  bool butterfly = true;
  ResidualRule rule = ResidualRule::merger;
};

GtopkSettings read_gtopk_settings(Config& exchange) {
  GtopkSettings settings;
  settings.butterfly =
      exchange.choice("merge", "butterfly", {"tree", "butterfly"},
                      "merge up a binomial tree and broadcast (the paper), or on every rank at once") == "butterfly";
  const std::string rule =
      exchange.choice("residual", "merger", {"published", "merger", "owner"},
                      "who keeps what a merge cuts off: nobody for certain (the paper), the rank that merges, or the "
                      "ranks whose values they were");
  settings.rule = rule == "published" ? ResidualRule::published
                  : rule == "merger"  ? ResidualRule::merger
                                      : ResidualRule::owner;
  return settings;
}

class GTopK final : public SparseCollective {
 public:
  explicit GTopK(const GtopkSettings& settings) : settings_(settings) {}

  SparseSum sum(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k) override {
    const GTopKOptions options{.k = k, .rule = settings_.rule};
    GTopKResult found =
        settings_.butterfly ? gtopk_butterfly(group, own, wire, options) : gtopk_tree(group, own, wire, options);
    lost_ += found.lost_mass;
    selected_ += mass(restricted(own, found.result.indices));
    return {
        .total = std::move(found.result), .returned = std::move(found.returned), .included = std::move(found.included)};
  }
  // Own, its message, what of it travels and what does not (2); what comes and its message; the sum (2), its candidates
  // (4, of twice as many values), what is kept, cut off and booked (3). In every round what was cut off and what
  // rounding kept back grow by a list at most; adding to them takes as much again.
  std::size_t lists(int ranks) const override {
    return 16 + 4 * static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ranks - 1)));
  }
  bool keeps_mass() const override { return settings_.rule != ResidualRule::published; }
  std::vector<Share> shares() const override {
    return {{.name = "lost_mass_fraction", .part = lost_, .whole = selected_}};
  }
  std::size_t worst_case_bytes(int ranks, std::size_t message) const override {
    const auto p = static_cast<std::size_t>(ranks);
    const std::size_t core = std::bit_floor(p);
    const auto rounds = static_cast<std::size_t>(std::bit_width(core) - 1);
    const std::size_t flagged = message + (settings_.rule == ResidualRule::owner ? message / 8 + 1 : 0);
    if (!settings_.butterfly) return (p - 1) * (message + flagged);
    return core * rounds * message + (p - core) * (message + flagged);
  }
  void state(Archive& archive) override {
    archive.value("mass that was lost", lost_);
    archive.value("mass that was selected", selected_);
  }
  ExchangeCost cost(SparseShape shape, const CostAssumptions& assumptions) const override {
    return gtopk_cost(shape, settings_.butterfly, assumptions);
  }

 private:
  GtopkSettings settings_;
  double lost_ = 0.0, selected_ = 0.0;  // Σ |value| at the applied positions
};

}  // namespace

ExchangeEntry gtopk_exchange() {
  return {.name = "gtopk",
          .summary = "S-SGD with the k largest of the sum of all top-k, merged two at a time; any number of ranks",
          .equation = "s_k, returned_i <- gTopKAllReduce(top_k(r_i));  r_i <- r_i + returned_i;  g <- s_k / P",
          .cost = "butterfly: log2 P messages of k entries each way and rank; tree: twice that on rank 0",
          .citation = "shi2019gtopk, Algorithms 3 and 4",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            const GtopkSettings settings = read_gtopk_settings(exchange);
            SparseSgdSettings common(exchange, root, of_sums);
            exchange.require(settings.rule != ResidualRule::owner || common.sparsifier->codec->exact(), "residual",
                             "owner needs sparsify.quantiser none: sums of rounded values have no owner; use merger");
            const std::optional<StepRule>& news = common.sparsifier->news;
            root.section("sparsify")
                .section("quantiser")
                .require(!news || news->bits || news->fixed, "name",
                         "with gtopk, which merges sums of ranks that have steps of their own, dead_zone needs the key "
                         "bits_per_value or step");
            return plan_sparse_sgd(std::move(common), [settings] { return std::make_unique<GTopK>(settings); });
          }};
}

}  // namespace hearsay
