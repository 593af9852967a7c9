#include "runtime/collectives/sparse_vector.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/error.hpp"

namespace hearsay {
namespace {

/// x or 0, without a jump: which of two lists comes next cannot be foretold, and a wrong guess costs more than the step.
float when(std::uint32_t one_or_zero, float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & (0U - one_or_zero));
}

/// One pass over both; `combine(x, y)` with 0 for what is missing.
template <class Combine>
SparseVector merged(const SparseVector& a, const SparseVector& b, Combine combine) {
  SparseVector result;
  result.indices.resize(a.size() + b.size());
  result.values.resize(a.size() + b.size());
  std::size_t i = 0, j = 0, count = 0;
  const auto append = [&](std::uint32_t index, float value) {
    result.indices[count] = index;
    result.values[count] = value;
    count += value != 0.0F ? 1 : 0;
  };
  while (i < a.size() && j < b.size()) {
    const std::uint32_t x = a.indices[i], y = b.indices[j];
    const auto first = static_cast<std::uint32_t>(x <= y), second = static_cast<std::uint32_t>(y <= x);
    append(std::min(x, y), combine(when(first, a.values[i]), when(second, b.values[j])));
    i += first;
    j += second;
  }
  for (; i < a.size(); ++i) append(a.indices[i], combine(a.values[i], 0.0F));
  for (; j < b.size(); ++j) append(b.indices[j], combine(0.0F, b.values[j]));
  result.resize(count);
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
  kept_.push_back(std::numeric_limits<std::uint32_t>::max());  // no place: what follows the last one
  SparseVector kept, dropped;
  kept.resize(k + 1);  // every entry is written to both; the one too many of each falls off
  dropped.resize(v.size() - k + 1);
  std::size_t next = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    kept.indices[next] = dropped.indices[i - next] = v.indices[i];
    kept.values[next] = dropped.values[i - next] = v.values[i];
    next += kept_[next] == i ? 1 : 0;
  }
  kept.resize(k);
  dropped.resize(v.size() - k);
  v = std::move(kept);
  return dropped;
}

std::size_t SparseWire::bound(std::size_t count) const { return sizeof(Header) + codec_->bound(count, n_); }

OwnedMessage SparseWire::encode(const SparseVector& v) const {
  const CodingTimer timer(ledger_);
  OwnedMessage message;
  message.bytes.resize(bound(v.size()));
  const EncodedSize size =
      codec_->encode(v.indices, v.values, n_, row_ends_, std::span(message.bytes).subspan(sizeof(Header)));
  const Header header{static_cast<std::uint32_t>(v.size()), static_cast<std::uint32_t>(size.index_bytes)};
  std::memcpy(message.bytes.data(), &header, sizeof header);
  message.bytes.resize(sizeof header + size.total());
  message.payload_bytes = size.payload_bytes;
  message.index_bytes = size.index_bytes;
  return message;
}

SparseWire::Header SparseWire::header_of(std::span<const std::byte> bytes) {
  Header header{};
  const bool headed = bytes.size() >= sizeof header;
  if (headed) std::memcpy(&header, bytes.data(), sizeof header);
  if (!headed || header.index_bytes > bytes.size() - sizeof header)
    throw CommunicationError("a sparse message of " + std::to_string(bytes.size()) +
                             " bytes ends too early. The ranks run different configurations or versions");
  return header;
}

OwnedMessage SparseWire::forward(std::vector<std::byte> bytes) {
  const Header header = header_of(bytes);
  const std::size_t payload = bytes.size() - sizeof header - header.index_bytes;
  return {.bytes = std::move(bytes), .payload_bytes = payload, .index_bytes = header.index_bytes};
}

SparseVector SparseWire::decode(std::span<const std::byte> bytes) const {
  const CodingTimer timer(ledger_);
  const Header header = header_of(bytes);
  SparseVector v;
  codec_->decode(bytes.subspan(sizeof header), header.count, n_, row_ends_, v.indices, v.values);
  if (std::ranges::find(v.values, 0.0F) == v.values.end()) return v;
  return sum(v, {});  // drops the zeros
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
