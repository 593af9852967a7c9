#include "runtime/exchange/global/parts/global.hpp"

#include <algorithm>

namespace hearsay {

void run_collective(const ExchangeContext& context, const std::function<void()>& collective) {
  const PhaseTimer waiting(context.ledger, Phase::wait);
  context.engine.run([&] {
    const PhaseTimer communicating(context.ledger, Phase::communicate);
    collective();
  });
}

void CollectiveQueue::submit(std::function<void()> collective, std::optional<SegmentRange> segments) {
  ++submitted_;
  const PhaseTimer waiting(context_.ledger, Phase::wait);  // an inline engine runs it here
  failed_ = true;
  context_.engine.submit([this, segments, collective = std::move(collective)] {
    {
      const PhaseTimer communicating(context_.ledger, Phase::communicate, segments);
      collective();
    }
    done_.fetch_add(1, std::memory_order_release);
  });
  failed_ = false;
}

void CollectiveQueue::wait() {
  const PhaseTimer waiting(context_.ledger, Phase::wait);
  failed_ = true;
  context_.engine.wait_until([this] { return done_.load(std::memory_order_acquire) == submitted_; });
  failed_ = false;
}

CollectiveQueue::~CollectiveQueue() {
  if (failed_ || done_.load(std::memory_order_acquire) == submitted_) return;  // the engine may be gone already
  try {
    wait();
  } catch (...) {
    // Destroyed with something under way means that an error is on its way already.
  }
}

void set_to_mean(Device& device, std::span<float> g, const SparseVector& total, int ranks) {
  std::vector<float> mean = total.values;
  for (float& value : mean) value /= static_cast<float>(ranks);
  device.clear(g);
  device.set_entries(total.indices, mean, g);
}

void count_events(const ExchangeContext& context, std::span<const std::uint32_t> positions) {
  auto next = positions.begin();
  SegmentId id = 0;
  for (const Segment& s : context.replica.layout.segments()) {
    next = std::lower_bound(next, positions.end(), s.offset);
    if (next != positions.end() && *next < s.offset + s.length) context.ledger.event(id);
    ++id;
  }
}

}  // namespace hearsay
