#include "runtime/collectives/sparse_vector.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "sparsify/magnitude.hpp"
#include "sparsify/quantisers/sum_step.hpp"

namespace hearsay {
namespace {

/// x or 0, without a jump: which of two lists comes next cannot be foretold, and a wrong guess costs more than the
/// step.
float when(std::uint32_t one_or_zero, float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & (0U - one_or_zero));
}

/// How many of the ascending `indices` are below `index`.
std::size_t position_of(std::span<const std::uint32_t> indices, std::uint32_t index) {
  return static_cast<std::size_t>(std::ranges::lower_bound(indices, index) - indices.begin());
}

/// A merge in progress: entries [i, i_end) of a and [j, j_end) of b are still to come, the next one goes to `to`.
struct Merge {
  std::size_t i, i_end, j, j_end, to;
  /// Steps that can be taken before one of the two may be at its end.
  std::size_t safe_steps() const { return std::min(i_end - i, j_end - j); }
};

/// One pass over both; `combine(x, y)` with 0 for what is missing. Where a step goes on depends on the step before; the
/// lower and the upper half of the positions do not depend on each other and are merged in turns, so that neither
/// waits.
template <class Combine>
SparseVector merged(const SparseVector& a, const SparseVector& b, Combine combine) {
  SparseVector result;
  result.resize(a.size() + b.size());
  std::uint32_t* const indices = result.indices.data();
  float* const values = result.values.data();
  const auto append = [=](Merge& m, std::uint32_t index, float value) {
    indices[m.to] = index;
    values[m.to] = value;
    m.to += magnitude_bits(value) != 0 ? 1 : 0;
  };
  const auto step = [append, combine, a_indices = a.indices.data(), a_values = a.values.data(),
                     b_indices = b.indices.data(), b_values = b.values.data()](Merge& m) {
    const std::uint32_t x = a_indices[m.i], y = b_indices[m.j];
    const auto first = static_cast<std::uint32_t>(x <= y), second = static_cast<std::uint32_t>(y <= x);
    append(m, std::min(x, y), combine(when(first, a_values[m.i]), when(second, b_values[m.j])));
    m.i += first;
    m.j += second;
  };
  const auto finish = [&](Merge& m) {
    while (m.safe_steps() > 0) step(m);
    for (; m.i < m.i_end; ++m.i) append(m, a.indices[m.i], combine(a.values[m.i], 0.0F));
    for (; m.j < m.j_end; ++m.j) append(m, b.indices[m.j], combine(0.0F, b.values[m.j]));
  };
  const std::size_t i = a.size() / 2, j = a.empty() ? 0 : position_of(b.indices, a.indices[i]);
  Merge lower{0, i, 0, j, 0}, upper{i, a.size(), j, b.size(), i + j};
  while (const std::size_t steps = std::min(lower.safe_steps(), upper.safe_steps())) {
    for (std::size_t s = 0; s < steps; ++s) {
      step(lower);
      step(upper);
    }
  }
  finish(lower);
  finish(upper);
  const std::size_t of_upper = upper.to - (i + j);
  std::copy_n(indices + i + j, of_upper, indices + lower.to);
  std::copy_n(values + i + j, of_upper, values + lower.to);
  result.resize(lower.to + of_upper);
  return result;
}

SparseVector filtered(const SparseVector& a, std::span<const std::uint32_t> chosen, bool keep_chosen) {
  SparseVector result;
  auto next = chosen.begin();
  for (std::size_t i = 0; i < a.size(); ++i) {
    while (next != chosen.end() && *next < a.indices[i]) ++next;
    const bool is_chosen = next != chosen.end() && *next == a.indices[i];
    if (is_chosen == keep_chosen) result.push_back(a.indices[i], a.values[i]);
  }
  return result;
}

/// A PhaseTimer where there is a ledger.
class CodingTimer {
 public:
  explicit CodingTimer(Ledger* ledger) {
    if (ledger != nullptr) timer_.emplace(*ledger, Phase::communicate_encode);
  }

 private:
  std::optional<PhaseTimer> timer_;
};

std::unique_ptr<Selector> exact_selector() {
  Config config = Config::from_text("name: topk");
  return chosen_entry(selectors(), config, "topk", "exact selection").make(config);
}

}  // namespace

SparseVector sum(const SparseVector& a, const SparseVector& b) {
  return merged(a, b, [](float x, float y) { return x + y; });
}

SparseVector difference(const SparseVector& a, const SparseVector& b) {
  return merged(a, b, [](float x, float y) { return x - y; });
}

SparseVector sum(std::span<const SparseVector> vectors) {
  if (vectors.empty()) return {};
  if (vectors.size() == 1) return vectors.front();
  const std::size_t half = (vectors.size() + 1) / 2;
  return sum(sum(vectors.first(half)), sum(vectors.subspan(half)));
}

SparseVector restricted(const SparseVector& a, std::span<const std::uint32_t> chosen) {
  return filtered(a, chosen, true);
}

SparseVector without(const SparseVector& a, std::span<const std::uint32_t> chosen) {
  return filtered(a, chosen, false);
}

double mass(const SparseVector& a) {
  double total = 0.0;
  for (const float value : a.values) total += std::abs(static_cast<double>(value));
  return total;
}

void add_to(std::span<float> values, const SparseVector& a) {
  for (std::size_t i = 0; i < a.size(); ++i) values[a.indices[i]] += a.values[i];
}

Truncation::Truncation() : selector_(exact_selector()) {}

SparseVector Truncation::keep_largest(SparseVector& v, std::size_t k) {
  if (v.size() <= k) return {};
  selector_->select(v.values, k, kept_);
  is_kept_.assign(v.size(), 0);
  for (const std::uint32_t i : kept_) is_kept_[i] = 1;
  SparseVector kept, dropped;
  kept.resize(k + 1);  // every entry is written to both; the one too many of each falls off
  dropped.resize(v.size() - k + 1);
  std::size_t next = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    kept.indices[next] = dropped.indices[i - next] = v.indices[i];
    kept.values[next] = dropped.values[i - next] = v.values[i];
    next += is_kept_[i];
  }
  kept.resize(k);
  dropped.resize(v.size() - k);
  v = std::move(kept);
  return dropped;
}

SparseWire::SparseWire(const Codec& codec, std::size_t n, std::vector<std::uint32_t> row_ends, Ledger* ledger,
                       SumStep* step)
    : codec_(&codec), n_(n), row_ends_(std::move(row_ends)), ledger_(ledger), step_(step) {
  require_positions(n, "a sparse message");
}

std::size_t SparseWire::bound(std::size_t count) const { return sizeof(Header) + codec_->bound(count, n_); }

OwnedMessage SparseWire::encode(const SparseVector& v) const {
  const CodingTimer timer(ledger_);
  OwnedMessage message;
  message.bytes.resize(bound(v.size()));
  const EncodedSize size =
      codec_->encode(v.indices, v.values, n_, row_ends_, std::span(message.bytes).subspan(sizeof(Header)),
                     step_ != nullptr ? step_->length_for(v.values) : 0.0F);
  const Header header = v.size();
  std::memcpy(message.bytes.data(), &header, sizeof header);
  message.bytes.resize(sizeof header + size.total());
  message.payload_bytes = size.payload_bytes;
  message.index_bytes = size.index_bytes;
  if (step_ != nullptr) step_->sent(message.bytes.size(), n_);
  return message;
}

EncodedSize SparseWire::read(std::span<const std::byte> bytes, SparseVector& v) const {
  const CodingTimer timer(ledger_);
  Header count = 0;
  if (bytes.size() < sizeof count)
    throw CommunicationError("a sparse message of " + std::to_string(bytes.size()) +
                             " bytes ends too early. The ranks run different configurations or versions");
  std::memcpy(&count, bytes.data(), sizeof count);
  if (step_ != nullptr && count > step_->most_news(n_))
    throw CommunicationError("a sparse message of " + std::to_string(count) + " values, where " +
                             std::to_string(step_->most_news(n_)) +
                             " are the most. The ranks run different configurations or versions");
  const EncodedSize size = codec_->decode(bytes.subspan(sizeof count), count, n_, row_ends_, v.indices, v.values);
  if (std::ranges::find(v.values, 0.0F) != v.values.end()) v = sum(v, {});  // drops the zeros
  return size;
}

SparseVector SparseWire::decode(std::span<const std::byte> bytes) const {
  SparseVector v;
  read(bytes, v);
  return v;
}

SparseWire::Received SparseWire::receive(std::vector<std::byte> bytes) const {
  Received received;
  const EncodedSize size = read(bytes, received.vector);
  received.message = {.bytes = std::move(bytes), .payload_bytes = size.payload_bytes, .index_bytes = size.index_bytes};
  return received;
}

SparseWire::Sent SparseWire::prepare(const SparseVector& v) const {
  Sent sent{.message = encode(v), .received = {}, .rest = {}};
  if (exact()) {
    sent.received = v;
  } else {
    sent.received = decode(sent.message.bytes);
    sent.rest = difference(v, sent.received);
  }
  return sent;
}

}  // namespace hearsay
