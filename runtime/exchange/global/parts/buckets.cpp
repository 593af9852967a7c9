#include "runtime/exchange/global/parts/buckets.hpp"

#include <stdexcept>
#include <string>

namespace hearsay {

Buckets::Buckets(const Layout& layout, std::size_t bytes)
    : bucket_of_(layout.count()), speaks_(layout.count(), std::uint8_t{0}) {
  for (SegmentId s = static_cast<SegmentId>(layout.count()); s-- > 0;) {
    if (buckets_.empty() || buckets_.back().length * sizeof(float) >= bytes) buckets_.push_back({.last = s});
    Bucket& bucket = buckets_.back();
    bucket.first = s;
    bucket.offset = layout[s].offset;
    bucket.length += layout[s].length;
    bucket_of_[s] = buckets_.size() - 1;
  }
}

void Buckets::restart() {
  next_ = 0;
  waiting_for_.assign(buckets_.size(), 0);
  for (std::size_t s = 0; s < bucket_of_.size(); ++s)
    waiting_for_[bucket_of_[s]] += first_iteration_ || speaks_[s] != 0 ? 1 : 0;
}

void Buckets::ready(SegmentId s, const std::function<void(const Bucket&)>& start) {
  if (!first_iteration_ && speaks_[s] == 0)
    throw std::logic_error("parameter " + std::to_string(s) +
                           " has a gradient now and had none in the first iteration; use exchange.overlap: false");
  speaks_[s] = 1;
  --waiting_for_[bucket_of_[s]];
  while (next_ < buckets_.size() && waiting_for_[next_] == 0) start(buckets_[next_++]);
}

void Buckets::finish(const std::function<void(const Bucket&)>& start) {
  while (next_ < buckets_.size()) start(buckets_[next_++]);
  first_iteration_ = false;
}

}  // namespace hearsay
