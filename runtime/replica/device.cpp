#include "runtime/replica/device.hpp"

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

std::unique_ptr<ChangeQuantiser> Device::quantise_changes(const Layout&, const Sparsifier&) { return nullptr; }

void wait_before_leaving(Device& device) noexcept {
  try {
    device.wait();
  } catch (const CommunicationError&) {
  }
}

}  // namespace hearsay
