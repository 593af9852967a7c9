// All selectors and codecs. To add one: its file in selectors/ or codecs/, its declaration and its line here.
#include <array>

#include "sparsify/sparsify.hpp"

namespace hearsay {

SelectorEntry dense_selector();
SelectorEntry topk_selector();

std::span<const SelectorEntry> selectors() {
  static const std::array table{dense_selector(), topk_selector()};
  return table;
}

CodecEntry plain_codec();

std::span<const CodecEntry> codecs() {
  static const std::array table{plain_codec()};
  return table;
}

}  // namespace hearsay
