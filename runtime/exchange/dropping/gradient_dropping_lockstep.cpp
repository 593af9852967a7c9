// Gradient dropping in step: all pushes of an iteration are added before the servers move, all clients pull the same.
//   finish:  push (messages between all pairs);  g_own ← (1/P) Σ_i v_i, 0 elsewhere;  x_own ← master
//   the optimizer moves x, of which only the own shard is meant
//   stepped:  master ← x_own;  every server's T(master − copy) to everybody;  copy ← copy + T(…);  x ← copy
// The clients' copy is the same on all ranks, the server's own among them: replicas stay equal bit by bit.
#include <algorithm>

#include "runtime/collectives/gather.hpp"
#include "runtime/exchange/dropping/gradient_dropping.hpp"
#include "runtime/exchange/global/parts/global.hpp"

namespace hearsay {
namespace {

class LockstepDropping final : public Exchange, public Residual {
 public:
  LockstepDropping(const ExchangeContext& context, const DroppingSettings& settings)
      : context_(context),
        me_(context.peers.rank()),
        ranks_(context.peers.size()),
        shards_(settings.push.sparsifier->codec, context.replica.layout, ranks_, &context.ledger),
        push_(context_, settings, shards_),
        pull_(context_, settings, shards_),
        copy_(ranks_ > 1 ? context.replica.layout.size() : 0),
        master_(copy_.size() > 0 ? shards_.part(me_).length : 0) {
    if (ranks_ == 1) return;
    std::ranges::copy(context.replica.values.span(), copy_.span().begin());
    std::ranges::copy(own(copy_), master_.span().begin());
  }

  void start(Iteration) override {}

  void finish(Iteration k) override {
    const auto g = context_.replica.gradients.span();
    push_.collect(g, epoch_of(context_, k));
    std::vector<SparseVector> pushed;  // by server
    for (int s = 0; s < ranks_; ++s) pushed.push_back(push_.take(s));
    run_collective(context_, [&] { push(pushed); });
    const PhaseTimer timer(context_.ledger, Phase::mix);
    for (int s = 0; s < ranks_; ++s) push_.sent(s, sent_[index(s)].received, sent_[index(s)].rest);
    std::ranges::fill(g, 0.0F);
    set_to_mean(context_, shards_.part(me_).begin, own(context_.replica.gradients),
                sum(std::span<const SparseVector>(arrived_)));
    if (ranks_ > 1) std::ranges::copy(master_.span(), own(context_.replica.values).begin());
  }

  void stepped(Iteration k) override {
    if (ranks_ == 1) return;
    std::ranges::copy(own(context_.replica.values), master_.span().begin());
    const SparseVector change = pull_.select(master_.span(), own(copy_), epoch_of(context_, k));
    std::vector<SparseVector> changes;  // by server
    run_collective(context_, [&] {
      const auto messages = all_gather(Group(context_.peers), shards_.wire(me_).encode(change));
      for (int s = 0; s < ranks_; ++s) changes.push_back(shards_.wire(s).decode(messages[index(s)].bytes));
    });
    const PhaseTimer timer(context_.ledger, Phase::mix);
    for (int s = 0; s < ranks_; ++s) add_to(shards_.part(s).of(copy_.span()), changes[index(s)]);
    std::ranges::copy(copy_.span(), context_.replica.values.span().begin());
  }
  Capabilities capabilities() override { return {.residual = this}; }
  void add_residual(std::span<float> block) const override { push_.add_residual(block); }
  void take_residual(std::span<const float> sum) override { push_.take_residual(sum); }
  void state(Archive& archive) override {
    push_.state(archive);
    pull_.state(archive);
    archive.values("what all clients hold", copy_.span());
    archive.values("master", master_.span());
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::span<float> own(FloatBlock& block) const { return shards_.part(me_).of(block.span()); }

  // Every rank to every other, in P − 1 rounds in which each sends one message and receives one.
  void push(std::vector<SparseVector>& pushed) {
    arrived_.assign(index(ranks_), {});
    sent_.assign(index(ranks_), {});
    sent_[index(me_)].received = pushed[index(me_)];  // never leaves the rank: not rounded
    arrived_[index(me_)] = std::move(pushed[index(me_)]);
    std::vector<std::byte> in;
    for (int round = 1; round < ranks_; ++round) {
      const int to = (me_ + round) % ranks_, from = (me_ - round + ranks_) % ranks_;
      sent_[index(to)] = shards_.wire(to).prepare(pushed[index(to)]);
      context_.peers.exchange(to, sent_[index(to)].message.view(), from, in);
      arrived_[index(from)] = shards_.wire(me_).decode(in);
    }
  }

  ExchangeContext context_;
  int me_, ranks_;
  Shards shards_;
  PushSide push_;
  PullSide pull_;
  FloatBlock copy_;                     // what all clients hold: x before and after an iteration
  FloatBlock master_;                   // what this rank's shard really is; master − copy is the residual of the pull
  std::vector<SparseWire::Sent> sent_;  // by server
  std::vector<SparseVector> arrived_;   // by client
};

}  // namespace

std::unique_ptr<Exchange> make_lockstep_dropping(const ExchangeContext& context, const DroppingSettings& settings) {
  return std::make_unique<LockstepDropping>(context, settings);
}

}  // namespace hearsay
