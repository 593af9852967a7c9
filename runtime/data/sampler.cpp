#include "runtime/data/sampler.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace hearsay {

Sampler::Sampler(std::vector<std::uint32_t> share, std::size_t samples_per_epoch, std::size_t batch_size, bool shuffle,
                 std::uint64_t seed, Batches batches)
    : share_(std::move(share)),
      samples_per_epoch_(samples_per_epoch),
      batch_size_(batch_size),
      shuffle_(shuffle),
      batches_(batches),
      random_(seed) {
  if (share_.empty()) throw std::logic_error("Sampler: the share is empty");
  if (samples_per_epoch_ == 0 || batch_size_ == 0) throw std::logic_error("Sampler: an epoch or a batch of nothing");
}

std::int64_t Sampler::iterations_per_epoch() const {
  return static_cast<std::int64_t>((samples_per_epoch_ + batch_size_ - 1) / batch_size_);
}

std::span<const std::uint32_t> Sampler::next() {
  if (position_ == epoch_.size()) start_epoch();
  const auto batch = std::span(epoch_).subspan(position_, next_size());
  position_ += batch.size();
  return batch;
}

void Sampler::skip(std::int64_t batches) {
  for (std::int64_t i = 0; i < batches; ++i) static_cast<void>(next());
}

std::size_t Sampler::next_size() const {
  const std::size_t left = epoch_.size() - position_;
  if (batches_ == Batches::whole) return std::min(batch_size_, left);
  const std::size_t batches_left = (left + batch_size_ - 1) / batch_size_;
  return (left + batches_left - 1) / batches_left;
}

void Sampler::deal(std::function<std::vector<std::uint32_t>(std::uint64_t e)> share_of_epoch) {
  dealt_ = std::move(share_of_epoch);
}

void Sampler::take_dealt() {
  share_ = dealt_(epochs_dealt_++);
  unseen_ = next_in_order_ = 0;
}

void Sampler::start_epoch() {
  epoch_.clear();
  position_ = 0;
  if (dealt_) take_dealt();
  if (!shuffle_) {
    run_on();
  } else if (samples_per_epoch_ >= share_.size()) {
    permute();
  } else {
    take_unseen();
  }
}

void Sampler::run_on() {
  while (epoch_.size() < samples_per_epoch_) {
    epoch_.push_back(share_[next_in_order_]);
    next_in_order_ = (next_in_order_ + 1) % share_.size();
  }
}

void Sampler::permute() {
  while (epoch_.size() < samples_per_epoch_) {
    random_.shuffle(std::span(share_));
    const std::size_t count = std::min(share_.size(), samples_per_epoch_ - epoch_.size());
    epoch_.insert(epoch_.end(), share_.begin(), share_.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

/// share_ = [seen | unseen]. If the unseen ones do not suffice, all of them are drawn, the missing ones come from the
/// seen, and with these a new pass begins: everything else, the just drawn ones included, is unseen again.
void Sampler::take_unseen() {
  const std::span share(share_);
  const std::size_t seen = share.size() - unseen_;
  if (unseen_ >= samples_per_epoch_) {
    const auto drawn = share.subspan(seen, samples_per_epoch_);
    epoch_.assign(drawn.begin(), drawn.end());
    unseen_ -= samples_per_epoch_;
    return;
  }
  const std::size_t missing = samples_per_epoch_ - unseen_;
  random_.shuffle(share.first(seen));
  epoch_.assign(share.begin(), share.begin() + static_cast<std::ptrdiff_t>(missing));
  epoch_.insert(epoch_.end(), share.begin() + static_cast<std::ptrdiff_t>(seen), share.end());
  random_.shuffle(std::span(epoch_));
  unseen_ = share.size() - missing;
  random_.shuffle(share.last(unseen_));
}

}  // namespace hearsay
