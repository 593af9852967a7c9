#include "runtime/exchange/outer/coded_sum.hpp"

#include <algorithm>
#include <utility>

#include "runtime/collectives/gathered_sum.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/global/parts/sparse_sgd.hpp"

namespace hearsay {

CodedSum::CodedSum(const ExchangeContext& context, const Sparsifier& sparsifier)
    : context_(context),
      codec_(*sparsifier.codec),
      step_(*sparsifier.news),
      feedback_({}, context.replica.layout.size(), context.peers.size()) {}

SparseVector CodedSum::take(std::span<const float> d, std::size_t offset) {
  step_.adds(d);
  feedback_.accumulate(d, offset);
  std::vector<std::uint32_t> news;
  step_.select(feedback_.residual().subspan(offset, d.size()), news);
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

void CodedSum::take_residual(std::span<const float> sum) { take_own_part(feedback_, context_.peers, sum); }

void CodedSum::state(Archive& archive) {
  step_.state(archive);
  feedback_.state(archive);
}

}  // namespace hearsay
