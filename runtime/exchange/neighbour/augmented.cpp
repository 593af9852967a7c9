#include "runtime/exchange/neighbour/augmented.hpp"

#include <algorithm>

namespace hearsay {

Layout augmented(const Layout& layout, const Beside& beside) {
  Layout block;
  for (const Segment& s : layout.segments())
    block.append(s.name, {static_cast<std::int64_t>(s.length + beside(s.length))});
  return block;
}

AugmentedLink::AugmentedLink(const ExchangeContext& context, const Beside& beside, float initial)
    : context_(context),
      layout_(context.replica.layout),
      values_(augmented(layout_, beside).size()),
      // Nobody asks for gradients of the block: a second one would be memory for nothing.
      block_(augmented(layout_, beside), values_.span(), values_.span()),
      link_(of_block(context, initial), {}, {}) {}

ExchangeContext AugmentedLink::of_block(const ExchangeContext& context, float initial) {
  block_.device = context.replica.device;
  std::ranges::fill(values_.span(), initial);
  take_x();
  return context.with(block_);
}

void AugmentedLink::take_x() {
  for (SegmentId s = 0; s < layout_.count(); ++s)
    std::ranges::copy(context_.replica.values.segment(layout_[s]), x(s).begin());
}

void AugmentedLink::mix(Iteration k) {
  link_.receive(k);
  const PhaseTimer timer(context_.ledger, Phase::mix);
  context_.device().mix_row(static_cast<float>(context_.neighbourhood.self_weight), link_.edges(k),
                            block_.values.span());
  for (SegmentId s = 0; s < layout_.count(); ++s)
    std::ranges::copy(x(s), context_.replica.values.segment(layout_[s]).begin());
}

}  // namespace hearsay
