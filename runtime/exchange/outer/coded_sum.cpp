#include "runtime/exchange/outer/coded_sum.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/gathered_sum.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/global/parts/sparse_sgd.hpp"
#include "runtime/replica/finite.hpp"

namespace hearsay {

CodedSum::CodedSum(const ExchangeContext& context, const Sparsifier& sparsifier, Meanwhile meanwhile)
    : context_(context),
      codec_(*sparsifier.codec),
      step_(*sparsifier.news),
      meanwhile_(meanwhile),
      feedback_({}, context.replica.layout.size(), context.peers.size()) {}

SparseVector CodedSum::take(std::span<const float> d, std::size_t offset) {
  const std::span<const float> r = feedback_.residual().subspan(offset, d.size());
  if (meanwhile_ == Meanwhile::local_steps) {
    before_.assign(r.begin(), r.end());
    before_offset_ = offset;
  }
  step_.adds(d);
  feedback_.accumulate(d, offset);
  std::vector<std::uint32_t> news;
  try {
    step_.select(r, news);
  } catch (const DivergenceError& error) {
    name_segment(context_.replica.layout, offset, r, "residual of outer differences", error);
  }
  SparseVector own = feedback_.take(news, offset);
  count_events(context_, own.indices);
  return own;
}

void CodedSum::sum(SparseVector own, std::size_t offset, std::span<float> d) {
  const auto first = static_cast<std::uint32_t>(offset);
  for (std::uint32_t& i : own.indices) i -= first;
  const SparseWire wire(codec_, d.size(), {}, &context_.ledger, &step_);
  SparseSum found = gathered_sum(Group(context_.peers), own, wire);
  std::ranges::fill(d, 0.0F);
  add_to(d, found.total);
  returned_ = std::move(found.returned);
  for (std::uint32_t& i : returned_.indices) i += first;
}

void CodedSum::settle() { feedback_.give_back(std::exchange(returned_, {})); }

void CodedSum::add_residual(std::span<float> block) const {
  const auto r = feedback_.residual();
  for (std::size_t i = 0; i < r.size(); ++i) {
    const bool is_under_way = i >= before_offset_ && i - before_offset_ < before_.size();
    block[i] += is_under_way ? before_[i - before_offset_] : r[i];
  }
}

void CodedSum::take_residual(std::span<const float> sum) { take_own_part(feedback_, context_.peers, sum); }

void CodedSum::state(Archive& archive) {
  step_.state(archive);
  feedback_.state(archive);
  if (meanwhile_ == Meanwhile::nothing) return;
  const std::size_t n = feedback_.residual().size();
  archive.list("residual before what is under way", before_, n);
  archive.value("where that begins", before_offset_);
  if (before_offset_ > n - before_.size())
    archive.refuse("where that begins", "is " + std::to_string(before_offset_) + " of " + std::to_string(n));
}

}  // namespace hearsay
