// Dense S-SGD: the mean of all gradients on every rank, the baseline of the global path.
//   g ← (1/P) Σ_i g_i
// shi2019gtopk, II-D; the ring: patarasuk2009bandwidth; buckets that start during the backward pass: li2020ddp.
// Deviates from the paper in: buckets; the ring's sum is added in ring order, the library's as the library likes;
// either gives the same bits on every rank.
// Cost per rank and iteration, B buckets: `ring`: 2 (P − 1) B messages, 2 (P − 1)/P · 4n bytes; `library`: its own, the
// ledger books what it is given, 4n bytes, once; memory: 4n/P bytes; with `overlap` hidden behind the backward pass but
// for the last bucket. On a GPU the ring's sums are made there, in the same order.
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/buckets.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/global/parts/mean_on_device.hpp"

namespace hearsay {
namespace {

struct AllreduceSettings {
  bool ring = true;
  bool overlap = true;
  std::size_t bucket_bytes = 1 << 20;
};

class AllReduce final : public Exchange {
 public:
  AllReduce(const ExchangeContext& context, const AllreduceSettings& settings)
      : context_(context),
        settings_(settings),
        buckets_(context.replica.layout, settings.bucket_bytes),
        queue_(context_) {
    if (settings_.ring && !context_.device().is_processor())
      there_.emplace(context_, longest());
    else
      here_.emplace(context_.device(), context_.replica.gradients.span());
  }

  void start(Iteration) override {
    for (SegmentId s = 0; s < context_.replica.layout.count(); ++s) context_.ledger.event(s);
    buckets_.restart();
  }
  void gradient_ready(SegmentId s) override {
    buckets_.ready(s, [this](const Buckets::Bucket& bucket) { reduce(bucket); });
  }
  void finish(Iteration) override {
    buckets_.finish([this](const Buckets::Bucket& bucket) { reduce(bucket); });
    queue_.wait();
    const PhaseTimer timer(context_.ledger, Phase::mix);
    if (there_) return there_->finish();
    divide_by_ranks(context_, 0, here_->span());
    here_->put();
  }
  Capabilities capabilities() override { return {.layer_wise = settings_.overlap}; }

 private:
  std::size_t longest() const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < buckets_.count(); ++i) most = std::max(most, buckets_[i].length);
    return most;
  }
  void reduce(const Buckets::Bucket& bucket) {
    const SegmentRange segments{bucket.first, bucket.last};
    if (there_) {
      const std::span<float> values = there_->begin(bucket.offset, bucket.length);
      return queue_.submit([this, values] { there_->add(values); }, segments);
    }
    const std::span<float> values = here_->fetch(bucket.offset, bucket.length);
    require_finite_gradients(context_.replica.layout, bucket.offset, values);
    queue_.submit(
        [this, values] {
          if (settings_.ring)
            ring_all_reduce(Group(context_.peers), values);
          else
            context_.peers.library_sum(values);
        },
        segments);
  }

  ExchangeContext context_;
  AllreduceSettings settings_;
  std::optional<View> here_;           // of g; or …
  std::optional<MeanOnDevice> there_;  // … what works on it where it lives
  Buckets buckets_;
  CollectiveQueue queue_;
};

class AllReducePlan final : public CollectivePlan {
 public:
  explicit AllReducePlan(Config& exchange) {
    settings_.ring = exchange.choice("method", "ring", {"ring", "library"},
                                     "a ring of our own, or the MPI library's all-reduce") == "ring";
    settings_.overlap = exchange.flag("overlap", true, "start buckets during the backward pass");
    settings_.bucket_bytes = static_cast<std::size_t>(
        exchange.integer("bucket_bytes", 1 << 20, Range::at_least(4), "segments that travel together"));
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    const auto p = static_cast<std::size_t>(topology.ranks());
    if (p == 1) return 0;
    return (settings_.ring ? 2 * (p - 1) : p) * layout.size() * sizeof(float);
  }
  /// MPI's own algorithm is not known: the ring's formula stands for it.
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const std::size_t buckets = Buckets(layout, settings_.bucket_bytes).count();
    ExchangeCost cost = allreduce_cost(topology.ranks(), layout.size(), buckets, assumptions);
    cost.overlaps = settings_.overlap;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<AllReduce>(context, settings_);
  }
  // What comes around the ring, of one bucket.
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    return std::min(settings_.bucket_bytes, layout.size() * sizeof(float)) / static_cast<std::size_t>(ranks);
  }
  bool runs_on_gpus() const override { return true; }
  std::vector<std::string> warnings_on_gpus() const override {
    if (settings_.ring) return {};
    return {
        "train.device: MPI's library adds on the processor: 4 bytes a value leave the GPU in every iteration, and "
        "as many come back; `method: ring` adds on the GPU"};
  }
  ExchangeLaws laws() const override {
    return {.mixes = ExchangeLaws::Mixes::gradients, .replicas_agree = true, .keeps_mass = true};
  }

 private:
  AllreduceSettings settings_;
};

}  // namespace

ExchangeEntry allreduce_exchange() {
  return {.name = "allreduce",
          .summary = "dense S-SGD: the mean gradient on every rank, in buckets that overlap the backward pass",
          .equation = "g <- 1/P sum_i g_i",
          .cost = "ring: 2 (P - 1) messages a bucket, 2 (P - 1)/P 4 n bytes a rank",
          .citation = "patarasuk2009bandwidth; shi2019gtopk, II-D; li2020ddp",
          .make = [](Config& exchange, Config&) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<AllReducePlan>(exchange);
          }};
}

}  // namespace hearsay
