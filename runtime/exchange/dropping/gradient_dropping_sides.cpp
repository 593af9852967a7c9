#include <algorithm>
#include <utility>

#include "runtime/exchange/dropping/gradient_dropping.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "sparsify/search/positions.hpp"

namespace hearsay {

Shards::Shards(std::shared_ptr<const Codec> codec, const Layout& layout, int servers, Ledger* ledger)
    : codec_(std::move(codec)) {
  for (int s = 0; s < servers; ++s) {
    parts_.push_back(part_of(layout.size(), servers, s));
    wires_.emplace_back(*codec_, parts_.back().length, row_ends(layout, parts_.back()), ledger);
  }
}

PushSide::PushSide(const ExchangeContext& context, const DroppingSettings& settings, const Shards& shards)
    : context_(context),
      sparsifier_(settings.push.sparsifier->fresh()),
      shards_(shards),
      selection_(sparsifier_, context.replica.layout),
      feedback_(settings.push.feedback, context.replica.layout.size(), shards.count()) {}

void PushSide::collect(std::span<const float> g, double epoch, double iterations) {
  const PhaseTimer timer(context_.ledger, Phase::select);
  accumulate_and_select(feedback_, selection_, g, of_iterations(sparsifier_.density(epoch), iterations), positions_);
  if (shards_.count() == 1) all_positions(g.size(), positions_);
  count_events(context_, positions_);
}

std::span<const std::uint32_t> PushSide::selected(int server) const {
  const Part& part = shards_.part(server);
  const auto from = std::lower_bound(positions_.begin(), positions_.end(), part.begin);
  return {from, std::lower_bound(from, positions_.end(), part.begin + part.length)};
}

std::size_t PushSide::owed(int server) const {
  const auto r = feedback_.residual();
  return static_cast<std::size_t>(
      std::ranges::count_if(selected(server), [&](std::uint32_t i) { return r[i] != 0.0F; }));
}

SparseVector PushSide::take(int server) {
  SparseVector taken = feedback_.take(selected(server));
  for (std::uint32_t& i : taken.indices) i -= static_cast<std::uint32_t>(shards_.part(server).begin);
  return taken;
}

void PushSide::sent(int server, const SparseVector& received, const SparseVector& rest) {
  const auto in_block = [&](SparseVector v) {
    for (std::uint32_t& i : v.indices) i += static_cast<std::uint32_t>(shards_.part(server).begin);
    return v;
  };
  feedback_.give_back(in_block(rest));
  feedback_.mask(in_block(received).indices);
}

SparseVector PullSide::select(std::span<const float> master, std::span<const float> copy, double epoch,
                              double iterations) {
  const PhaseTimer timer(context_.ledger, Phase::select);
  change_.resize(master.size());
  for (std::size_t i = 0; i < master.size(); ++i) change_[i] = master[i] - copy[i];
  try {
    if (settings_.pull_density == 1.0) {
      require_finite(change_);
      all_positions(change_.size(), positions_);
    } else {
      sparsifier_.selector->select(change_, wanted(epoch, iterations, change_.size()), positions_);
    }
  } catch (const DivergenceError& error) {
    name_segment(context_.replica.layout, shards_.part(context_.peers.rank()).begin, change_, "change", error);
  }
  SparseVector chosen;
  for (const std::uint32_t i : positions_)
    if (change_[i] != 0.0F) chosen.push_back(i, change_[i]);
  return chosen;
}

std::size_t PullSide::most(double epoch, double iterations) const {
  const std::size_t n = shards_.part(context_.peers.rank()).length;
  return settings_.pull_density == 1.0 ? n : sparsifier_.selector->most(wanted(epoch, iterations, n), n);
}

}  // namespace hearsay
