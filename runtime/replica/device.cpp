#include "runtime/replica/device.hpp"

#include "sparsify/sparsify.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {

std::vector<float> fetched(Device& device, std::span<const float> values) {
  std::vector<float> here(values.size());
  device.fetch(values, std::as_writable_bytes(std::span(here)));
  device.wait();
  return here;
}

Device::ChangeNorms Device::largest_changes(const Layout& layout) {
  return [this, &layout](std::span<const float> x, std::span<const float> y, std::span<double> largest) {
    const std::vector<float> a = fetched(*this, x), b = fetched(*this, y);
    SegmentId s = 0;
    for (const Segment& segment : layout.segments())
      largest[s++] = largest_difference(std::span(a).subspan(segment.offset, segment.length),
                                        std::span(b).subspan(segment.offset, segment.length));
  };
}

bool gpus_select_changes(const Sparsifier& sparsifier) {
  return sparsifier.dense || sparsifier.selector->search_kind() != SearchKind::none;
}

// One selection looks at one run of values: small segments cannot be left out of the middle of it.
bool gpus_select_sums(const Sparsifier& sparsifier) {
  const bool counts_in_steps = sparsifier.codec && sparsifier.codec->step_rule();
  return gpus_select_changes(sparsifier) && !counts_in_steps && (sparsifier.per_segment || sparsifier.dense_below == 0);
}

// The bytes of a packet are set apart before it is known how many values a sample keeps.
bool gpus_quantise(const Sparsifier& sparsifier) {
  return gpus_select_changes(sparsifier) && sparsifier.selector->search_kind() != SearchKind::sample &&
         sparsifier.codec->group_code() != GroupCode::none;
}

std::unique_ptr<ChangeQuantiser> Device::quantise_changes(const Layout&, const Sparsifier&) { return nullptr; }

void wait_before_leaving(Device& device) noexcept {
  try {
    device.wait();
  } catch (const CommunicationError&) {
  }
}

}  // namespace hearsay
