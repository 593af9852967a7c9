#include "runtime/exchange/global/parts/global.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/replica/block_selection.hpp"
#include "sparsify/quantisers/sum_step.hpp"
#include "sparsify/search/carried_select.hpp"

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

void divide_by_ranks(const ExchangeContext& context, std::size_t offset, std::span<float> values) {
  const auto ranks = static_cast<float>(context.peers.size());
  for (float& value : values) value /= ranks;
  require_finite_sum(context.replica.layout, offset, values);
}

void set_to_mean(const ExchangeContext& context, std::size_t offset, std::span<float> g, const SparseVector& total) {
  std::vector<float> mean = total.values;
  for (float& value : mean) value /= static_cast<float>(context.peers.size());
  if (const auto bad = std::ranges::find_if_not(mean, [](float value) { return std::isfinite(value); });
      bad != mean.end())
    require_finite_sum(context.replica.layout, offset + total.indices[static_cast<std::size_t>(bad - mean.begin())],
                       {&*bad, 1});
  context.device().clear(g);
  context.device().set_entries(total.indices, mean, g);
}

std::size_t usual_entries(const Sparsifier& sparsifier, const Layout& layout) {
  if (sparsifier.news) return SumStep::usual_news(*sparsifier.news, layout.size());
  return BlockSelection(sparsifier, layout).count(sparsifier.selector->density());
}

std::size_t most_entries(const Sparsifier& sparsifier, const Layout& layout) {
  if (sparsifier.news) return SumStep::most_news(*sparsifier.news, layout.size());
  const std::size_t k = BlockSelection(sparsifier, layout).count(sparsifier.largest_density());
  return sparsifier.selector->most(k, layout.size());
}

std::size_t usual_bytes(const Sparsifier& sparsifier, const Layout& layout) {
  const std::size_t longest = SparseWire(*sparsifier.codec, layout.size(), {}).bound(usual_entries(sparsifier, layout));
  if (!sparsifier.news || !sparsifier.news->bits) return longest;
  const double paid = *sparsifier.news->bits / 8.0 * static_cast<double>(layout.size());
  return std::min(longest, static_cast<std::size_t>(std::ceil(paid)));
}

std::size_t list_bytes(const Sparsifier& sparsifier, const Layout& layout) {
  const std::size_t k = most_entries(sparsifier, layout);
  return std::max(k * (sizeof(std::uint32_t) + sizeof(float)),
                  SparseWire(*sparsifier.codec, layout.size(), {}).bound(k));
}

std::size_t candidate_bytes(const Sparsifier& sparsifier, const Layout& layout) {
  const std::size_t n = layout.size(), k = most_entries(sparsifier, layout);
  return Candidates::bytes(ExactSelect::most_candidates(sparsifier.news ? k : CarriedSelect::most_wanted(k, n), n));
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
