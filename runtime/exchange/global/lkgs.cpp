// Layer-wise top-k S-SGD: every segment sends its largest values as soon as it has its gradient.
//   gradient_ready(s):  r_s ← r_s + g_s;  v_s ← top_{V_s}(r_s);  r_s ← r_s − v_s;  starts Σ_i v_s,i
//   finish:  g ← (1/P) Σ_i v_i;  c_s ← how many of the k largest of r + v lie in s
//   before the next backward pass:  c ← Σ_i c_i;  V ← k · c / Σ_s c_s, rounded, at least 1 a segment
//   V = the lengths in the first iteration; a segment of 4,096 values or more that is sent whole goes around a ring
// li2022layerwise, Algorithm 2; error feedback from aji2017sparse.
// Deviates from the paper in: the mean of the ranks' values, where the paper adds them; what "update V" means, which
// the paper leaves open: it is made from r + v as it was before what is sent was taken out, it is the same on every
// rank by one small all-reduce, and no segment gets less than one value, or it would be silent for ever; exactly V_s
// values, ties by lower position; segments start in one order on every rank, last first, whatever order gradients come
// in; no `feedback.clip_norm`, which needs the gradient as a whole; the ring, whose sums differ from a gather's by the
// order of additions only: in ring order, the same bits on every rank, and no quantiser rounds them.
// Cost per rank and iteration, S segments: S ⌈log2 P⌉ messages, (P − 1) max(k, S) entries of 8 bytes with the plain
// codec and 32 bytes of headers for each segment of each other rank; 2(P − 1) messages and 8 S (P − 1)/P bytes for V; a
// ring of n_s values: 2(P − 1) messages and 8 n_s (P − 1)/P bytes, which is what the first iteration sends, too;
// memory: one block of residuals; time: that of `topk` and a second selection, of k among all values, for V. With
// `overlap` all but the last segments' messages are hidden behind the backward pass.
#include <algorithm>
#include <utility>

#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/buckets.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/global/parts/segment_budgets.hpp"
#include "runtime/exchange/global/parts/sparse_sgd.hpp"
#include "sparsify/search/positions.hpp"

namespace hearsay {
namespace {

SparseVector moved_by(SparseVector v, std::size_t offset) {
  for (std::uint32_t& i : v.indices) i += static_cast<std::uint32_t>(offset);
  return v;
}

/// Values from which a segment that is sent whole goes around a ring: below, the ring's 2 (P − 1) messages in place of
/// ⌈log2 P⌉ take longer than the bytes that it saves, on networks on which a message costs as much as 16 kB.
constexpr std::size_t ring_from = 4096;

SparseWire wire_of(const Codec& codec, const Layout& layout, const Segment& s, Ledger* ledger = nullptr) {
  return {codec, s.length, row_ends(layout, {.begin = s.offset, .length = s.length}), ledger};
}

class LayerWiseTopK final : public Exchange, public Residual {
 public:
  LayerWiseTopK(const ExchangeContext& context, const SparseSgdSettings& settings, bool overlap)
      : context_(context),
        here_(context.device(), context.replica.gradients.span()),
        layout_(context.replica.layout),
        overlap_(overlap),
        sparsifier_(settings.sparsifier->fresh()),
        selection_(sparsifier_, layout_),
        feedback_(settings.feedback, layout_.size(), context.peers.size()),
        budgets_(layout_, sparsifier_.dense_below),
        buckets_(layout_, 1),  // of one byte or more: a segment each
        queue_(context_) {
    for (const Segment& s : layout_.segments())
      parts_.push_back({.wire = wire_of(*sparsifier_.codec, layout_, s, &context.ledger)});
  }

  void start(Iteration k) override {
    buckets_.restart();
    if (!counted_) return;
    density_ = sparsifier_.density(epoch_of(context_, k));
    queue_.submit([this] { ring_all_reduce(Group(context_.peers), budgets_.counts()); });
  }
  void gradient_ready(SegmentId s) override {
    if (overlap_) buckets_.ready(s, [this](const Buckets::Bucket& bucket) { start_bucket(bucket); });
  }
  void finish(Iteration k) override {
    buckets_.finish([this](const Buckets::Bucket& bucket) { start_bucket(bucket); });
    count(sparsifier_.density(epoch_of(context_, k + 1)));
    queue_.wait();
    const PhaseTimer timer(context_.ledger, Phase::mix);
    for (SegmentId s = 0; s < layout_.count(); ++s) apply(layout_[s], parts_[s]);
  }
  Capabilities capabilities() override { return {.residual = this, .layer_wise = overlap_}; }
  void add_residual(std::span<float> block) const override { feedback_.add_residual(block); }
  void take_residual(std::span<const float> sum) override { take_own_part(feedback_, context_.peers, sum); }
  // Budgets are made from the counts before anything is sent.
  void state(Archive& archive) override {
    sparsifier_.selector->state(archive);
    feedback_.state(archive);
    archive.value("budgets are counted", counted_);
    archive.values("largest values of the segments", budgets_.counts());
  }

 private:
  struct SegmentSum {
    SparseWire wire;
    SparseVector own{};  ///< positions in the segment; not written until the sum is there
    SparseSum sum{};
    std::vector<float> whole{};  ///< in place of `sum` where the segment goes around the ring; else empty
  };

  void start_bucket(const Buckets::Bucket& bucket) {
    if (counted_) update_budgets();
    for (SegmentId s = bucket.last + 1; s-- > bucket.first;)  // several where some have no values
      if (layout_[s].length > 0) start_segment(s);
  }
  void update_budgets() {
    queue_.wait();  // for the counts: nothing else is under way before the first segment
    budgets_.share_out(kept_count(density_, budgets_.competing()));
    counted_ = false;
  }
  void start_segment(SegmentId s) {
    select(s);
    SegmentSum& part = parts_[s];
    const std::size_t length = layout_[s].length;
    if (length >= ring_from && budgets_[s] == length) {
      part.whole.assign(length, 0.0F);
      add_to(part.whole, part.own);
      queue_.submit([this, &part] { ring_all_reduce(Group(context_.peers), part.whole); }, SegmentRange{s, s});
    } else {
      queue_.submit([this, &part] { part.sum = gathered_sum(Group(context_.peers), part.own, part.wire); },
                    SegmentRange{s, s});
    }
  }
  void select(SegmentId s) {
    const PhaseTimer timer(context_.ledger, Phase::select);
    const Segment& segment = layout_[s];
    feedback_.accumulate(here_.fetch(segment.offset, segment.length), segment.offset);
    const auto values = feedback_.residual().subspan(segment.offset, segment.length);
    try {
      if (budgets_[s] == segment.length) {
        require_finite(values);
        all_positions(segment.length, positions_);
      } else {
        sparsifier_.selector->select(values, budgets_[s], positions_);
      }
    } catch (const DivergenceError& error) {
      name_segment(layout_, segment.offset, values, "gradient", error);
    }
    SparseVector& own = parts_[s].own;
    own = feedback_.take(positions_, segment.offset);
    for (std::uint32_t& i : own.indices) i -= static_cast<std::uint32_t>(segment.offset);
    if (!own.empty()) context_.ledger.event(s);
  }

  // Where the k largest values were: what has been taken goes back for as long as it takes to look.
  void count(double density) {
    const PhaseTimer timer(context_.ledger, Phase::select);
    const auto r = feedback_.residual();
    for (SegmentId s = 0; s < layout_.count(); ++s) add_to(r.subspan(layout_[s].offset), parts_[s].own);
    selection_.select(r, density, positions_);
    budgets_.count(positions_);
    for (SegmentId s = 0; s < layout_.count(); ++s)
      for (const std::uint32_t i : parts_[s].own.indices) r[layout_[s].offset + i] = 0.0F;
    counted_ = true;
  }
  void apply(const Segment& segment, SegmentSum& part) {
    if (!part.whole.empty()) return apply_whole(segment, part);
    SparseSum& sum = part.sum;
    feedback_.give_back(moved_by(std::move(sum.returned), segment.offset));
    feedback_.mask(moved_by(std::move(sum.included), segment.offset).indices);
    set_to_mean(context_, segment.offset, context_.replica.gradients.segment(segment), sum.total);
  }

  void apply_whole(const Segment& segment, SegmentSum& part) {
    feedback_.mask(moved_by(part.own, segment.offset).indices);
    std::vector<float> mean = std::exchange(part.whole, {});
    divide_by_ranks(context_, segment.offset, mean);
    context_.device().put(std::as_bytes(std::span(mean)), context_.replica.gradients.segment(segment));
  }

  ExchangeContext context_;
  View here_;  // of g
  const Layout& layout_;
  bool overlap_;
  Sparsifier sparsifier_;
  BlockSelection selection_;
  ErrorFeedback feedback_;
  SegmentBudgets budgets_;
  Buckets buckets_;
  std::vector<SegmentSum> parts_;  // by segment
  std::vector<std::uint32_t> positions_;
  double density_ = 1.0;
  bool counted_ = false;   // there are counts that V has not been made from
  CollectiveQueue queue_;  // last: what is under way refers to all of the above
};

class LayerWiseTopKPlan final : public CollectivePlan {
 public:
  LayerWiseTopKPlan(Config& exchange, Config& root)
      : settings_(exchange, root, {.selector = "topk", .per_segment = false, .scope_is_fixed = true}) {
    overlap_ = exchange.flag("overlap", true, "start segments during the backward pass");
    exchange.section("feedback")
        .require(settings_.feedback.clip_norm == 0.0, "clip_norm",
                 "lkgs sends segments before the norm of the whole gradient is known; use 0");
  }
  // The first iteration, which is dense, or a later one, in which a segment just not whole is gathered; and the counts.
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    const auto p = static_cast<std::size_t>(topology.ranks());
    const Sparsifier& sparsifier = *settings_.sparsifier;
    std::size_t bytes = 2 * (p - 1) * layout.count() * sizeof(float);
    const std::size_t most = std::max<std::size_t>(1, kept_count(sparsifier.largest_density(), layout.size()));
    for (const Segment& s : layout.segments()) {
      if (s.length == 0) continue;
      const bool ring = s.length >= ring_from;
      const std::size_t entries = ring ? std::min(most, s.length - 1) : s.length;
      const std::size_t gathered =
          p * (p - 1) * (wire_of(*sparsifier.codec, layout, s).bound(entries) + gather_header_bytes);
      bytes += ring ? std::max(gathered, 2 * (p - 1) * s.length * sizeof(float)) : gathered;
    }
    return bytes;
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    SparseShape shape = settings_.shape(layout, topology.ranks());
    const RingedSegments rings = always_whole(layout, shape.k);
    shape.k = std::max(shape.k - std::min(shape.k, rings.values),
                       layout.count() - rings.segments);  // at least one value a segment
    // The budgets are not known before training, so entries are counted as in one message, headers segment by segment.
    constexpr std::size_t wire_header_bytes = 8;
    const Sparsifier& sparsifier = *settings_.sparsifier;
    const SparseWire wire(*sparsifier.codec, layout.size(), {});
    const std::size_t gathers = layout.count() - rings.segments;
    shape.message_bytes = gathers == 0 ? 0 : wire.bound(shape.k) + gathers * (wire_header_bytes + gather_header_bytes);
    ExchangeCost cost = layerwise_cost(shape, layout.count(), rings, assumptions);
    cost.overlaps = overlap_;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<LayerWiseTopK>(context, settings_, overlap_);
  }
  // With what the first iteration sends, all values and their positions, and the sums of what goes around the ring.
  std::size_t kept_bytes(const Layout& layout, std::size_t, int) const override {
    return feedback_bytes(settings_.feedback, layout.size()) +
           layout.size() * (2 * sizeof(float) + sizeof(std::uint32_t));
  }
  bool runs_on_gpus() const override { return true; }
  std::vector<std::string> warnings_on_gpus() const override {
    return {"train.device: lkgs selects and adds on the processor: 4 bytes a value leave the GPU in every iteration"};
  }
  ExchangeLaws laws() const override {
    return {.mixes = ExchangeLaws::Mixes::gradients, .replicas_agree = true, .keeps_mass = true};
  }

 private:
  void require_fitting(const Layout& layout) const override { require_positions(layout.size(), "the model"); }
  /// What goes around the ring in every iteration, k values in all being sent.
  RingedSegments always_whole(const Layout& layout, std::size_t k) const {
    const std::size_t dense_below = settings_.sparsifier->dense_below;
    RingedSegments rings;
    for (const Segment& s : layout.segments()) {
      if (s.length < ring_from || (s.length >= dense_below && k < layout.size())) continue;
      ++rings.segments;
      rings.values += s.length;
    }
    return rings;
  }

  SparseSgdSettings settings_;
  bool overlap_ = true;
};

}  // namespace

ExchangeEntry lkgs_exchange() {
  return {.name = "lkgs",
          .summary = "S-SGD with layer-wise top-k: every segment sends its share of k while the backward pass goes on",
          .equation =
              "r_s <- r_s + g_s;  v_s <- top_{V_s}(r_s);  g_s <- 1/P sum_i v_s,i;  V_s ~ how many of the last "
              "iteration's k largest values lay in s",
          .cost = "S ceil(log2 P) messages, (P - 1) max(k, S) entries of 8 bytes a rank; a second selection for V",
          .citation = "li2022layerwise, Algorithm 2; aji2017sparse",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<LayerWiseTopKPlan>(exchange, root);
          }};
}

}  // namespace hearsay
