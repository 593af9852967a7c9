#include "runtime/replica/finite_watch.hpp"

#include <algorithm>
#include <sstream>

#include "runtime/replica/device.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

std::optional<std::string> not_finite(const Layout& layout, std::size_t offset, std::span<const float> values) {
  if (all_finite(values)) return std::nullopt;
  const auto bad = std::ranges::find_if(values, [](float value) { return !all_finite({&value, 1}); });
  const std::size_t at = offset + static_cast<std::size_t>(bad - values.begin());
  const auto segment = std::ranges::find_if(
      layout.segments(), [at](const Segment& s) { return s.offset <= at && at < s.offset + s.length; });
  std::ostringstream text;
  text << "value " << at - segment->offset << " of parameter '" << segment->name << "' is " << *bad;
  return text.str();
}

FiniteWatch::FiniteWatch(const Parameters& replica)
    : replica_(replica), finite_after_((replica.layout.size() + piece - 1) / piece, -1) {}

std::optional<NotFinite> FiniteWatch::look(std::int64_t k) {
  if (finite_after_.empty() || !replica_.device->is_processor()) return std::nullopt;
  const std::size_t at = next_;
  next_ = (next_ + 1) % finite_after_.size();
  const auto x = replica_.values.span();
  return look_at(at, x.subspan(at * piece, std::min(piece, x.size() - at * piece)), k);
}

std::optional<NotFinite> FiniteWatch::look_at_all(std::int64_t k) {
  const bool here = replica_.device->is_processor();
  const std::vector<float> fetched_x = here ? std::vector<float>() : fetched(*replica_.device, replica_.values.span());
  const std::span<const float> x = here ? replica_.values.span() : std::span(fetched_x);
  std::optional<NotFinite> first;
  for (std::size_t at = 0; at < finite_after_.size(); ++at) {
    auto found = look_at(at, x.subspan(at * piece, std::min(piece, x.size() - at * piece)), k);
    if (found && (!first || found->last < first->last)) first = std::move(found);
  }
  return first;
}

std::optional<NotFinite> FiniteWatch::look_at(std::size_t at, std::span<const float> values, std::int64_t k) {
  auto what = not_finite(replica_.layout, at * piece, values);
  if (what) return NotFinite{.first = finite_after_[at] + 1, .last = k, .what = std::move(*what)};
  finite_after_[at] = k;
  return std::nullopt;
}

}  // namespace hearsay
