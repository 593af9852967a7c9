// All selectors, position coders and quantisers. To add one: its file in selectors/, codecs/ or quantisers/, its
// declaration and its line here.
#include <array>

#include "sparsify/sparsify.hpp"

namespace hearsay {

SelectorEntry chunked_selector();
SelectorEntry dense_selector();
SelectorEntry mstopk_selector();
SelectorEntry random_selector();
SelectorEntry sampled_selector();
SelectorEntry threshold_selector();
SelectorEntry topk_selector();

std::span<const SelectorEntry> selectors() {
  static const std::array table{dense_selector(),  topk_selector(),      chunked_selector(), sampled_selector(),
                                mstopk_selector(), threshold_selector(), random_selector()};
  return table;
}

PositionCoderEntry bitmap_coder();
PositionCoderEntry delta_coder();
PositionCoderEntry golomb_coder();
PositionCoderEntry plain_coder();
PositionCoderEntry smallest_coder();

std::span<const PositionCoderEntry> position_coders() {
  static const std::array table{plain_coder(), delta_coder(), bitmap_coder(), golomb_coder(), smallest_coder()};
  return table;
}

QuantiserEntry dead_zone_quantiser();
QuantiserEntry fp16_quantiser();
QuantiserEntry fp4_quantiser();
QuantiserEntry int8_quantiser();
QuantiserEntry none_quantiser();
QuantiserEntry one_bit_quantiser();
QuantiserEntry two_bit_quantiser();

std::span<const QuantiserEntry> quantisers() {
  static const std::array table{none_quantiser(),    fp16_quantiser(),    int8_quantiser(),     fp4_quantiser(),
                                two_bit_quantiser(), one_bit_quantiser(), dead_zone_quantiser()};
  return table;
}

}  // namespace hearsay
