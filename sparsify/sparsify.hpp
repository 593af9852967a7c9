#pragma once
// Which values of a segment travel, and how they are written.
//
// A Selector picks positions; a Codec writes picked values and their positions as bytes and reads them back. What is
// not sent, and what a quantiser rounds off, stays with the caller (the residual, or the reference of what a neighbour
// holds).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/table.hpp"
#include "base/state/archive.hpp"
#include "sparsify/searches.hpp"

namespace hearsay {

/// How many of n values to keep: k = max(1, round(ρ·n)), at most n; 0 for n = 0.
std::size_t kept_count(double density, std::size_t n);

/// Throws ConfigError unless the positions of n values have 32 bits, n < 2³². `what` has these values: "segment
/// 'fc.weight'".
void require_positions(std::size_t n, const std::string& what);

/// Throws DivergenceError: the value at `position` of n is not finite.
[[noreturn]] void refuse_value(std::size_t position, std::size_t n, float value);
bool all_finite(std::span<const float> values);
/// Throws DivergenceError (position and value of the first one) unless all values are finite. One read pass.
void require_finite(std::span<const float> values);

/// Picks positions of a run of values, of fewer than 2³².
class Selector {
 public:
  virtual ~Selector() = default;
  /// One of the same settings that remembers nothing.
  virtual std::unique_ptr<Selector> fresh() const = 0;
  /// Clears `indices` and fills it with the positions to keep in `values`, ascending and unique: `k` of them (k ≤ n),
  /// or about k where the selector says so. Throws DivergenceError (position and value) if a value is not finite.
  virtual void select(std::span<const float> values, std::size_t k, std::vector<std::uint32_t>& indices) = 0;
  /// values ← values + scale · addend, then `select`: what error feedback does. May remember something of `values`, by
  /// its address, that makes the next call faster; never something that changes the result.
  virtual void add_and_select(std::span<float> values, std::span<const float> addend, float scale, std::size_t k,
                              std::vector<std::uint32_t>& indices);
  /// The most positions `select` can ever return for k of n values: what a mailbox must have room for.
  virtual std::size_t most(std::size_t k, std::size_t n) const = 0;
  /// The fraction ρ to keep that its section asks for, k = kept_count(ρ, n); 1 where it does not ask.
  virtual double density() const { return 1.0; }
  /// How it searches, where devices can do it as well.
  virtual SearchKind search_kind() const { return SearchKind::none; }
  /// The next `select` of k of n values, which a device does in its place: it counts, and its draws are used up.
  virtual Search next_search(std::size_t k, std::size_t n) {
    static_cast<void>(k), static_cast<void>(n);
    return {};
  }
  /// What decides later draws (base/state/archive.hpp).
  virtual void state(Archive& archive) { static_cast<void>(archive); }
  /// For predictions: how often `select` reads the values to find k of them, where that is far from what `topk` does;
  /// else 0.
  virtual double reads(std::size_t k) const {
    static_cast<void>(k);
    return 0.0;
  }
};

/// Writes k ascending positions below n as bytes.
class PositionCoder {
 public:
  virtual ~PositionCoder() = default;
  /// Bytes that `encode` may need for any count ≤ k positions below n.
  virtual std::size_t bound(std::size_t k, std::size_t n) const = 0;
  /// Bytes that `encode` uses for these positions.
  virtual std::size_t bytes(std::span<const std::uint32_t> indices, std::size_t n) const = 0;
  /// Returns how many bytes of `out`, which has at least bytes(indices, n), are used.
  virtual std::size_t encode(std::span<const std::uint32_t> indices, std::size_t n, std::span<std::byte> out) const = 0;
  /// Reads `count` positions from the front of `in` and returns how many bytes they took. Any bytes are safe: throws
  /// CommunicationError if they are not an encoding (too short, not ascending, ≥ n, count > n).
  virtual std::size_t decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                             std::vector<std::uint32_t>& indices) const = 0;
};

/// The one length that a quantiser counts all values of a model in, and how far a value has to be from its copy.
struct StepRule {
  double horizon = 0.0;           ///< h: Δ = h times the root mean square of a step of the optimizer
  std::optional<double> fixed{};  ///< Δ itself
  std::optional<double> bits{};   ///< of a message, a value of the model: Δ follows them, in sums over all ranks
  double dead_zone = 1.0;         ///< θ: changes of less than θΔ are no news
};

/// Δ as it is sent: of 8 significant bits.
float sent_step(double step);
/// θΔ.
float dead_zone(const StepRule& rule, float step);

/// Codes that devices write and read as well, with the same bits: levels of a group, then as many bits a value.
enum class GroupCode { none, int8, fp4, two_bit, one_bit_threshold, one_bit_mean };

/// Writes values as bytes, perhaps rounded. Values come in groups of neighbours that may share a scale or a centre.
class Quantiser {
 public:
  virtual ~Quantiser() = default;
  /// Whether decode gives back every bit.
  virtual bool exact() const = 0;
  /// What |v − q(v)| is at most for `value`, one of `group`, to six digits. Those with a StepRule: without a Δ of the
  /// caller's.
  virtual double error_bound(std::span<const float> group, float value) const = 0;
  /// Bytes that `count` values in `groups` groups take at most; for all but those with a StepRule just these.
  virtual std::size_t bound(std::size_t count, std::size_t groups) const = 0;
  /// `group_ends` ascending, the last one values.size(); one group per row that has values. Values are finite. `step`:
  /// Δ of those with a StepRule; 0: they choose it, group by group. Returns how many bytes of `out` are used.
  virtual std::size_t encode(std::span<const float> values, std::span<const std::size_t> group_ends, float step,
                             std::span<std::byte> out) const = 0;
  /// Fills `values` from `in`, all of it. Any bytes are safe: what is not finite, or not an encoding of as many values
  /// in these groups, throws CommunicationError.
  virtual void decode(std::span<const std::byte> in, std::span<const std::size_t> group_ends,
                      std::span<float> values) const = 0;
  /// What it counts in, where that is one length for all values.
  virtual std::optional<StepRule> step_rule() const { return std::nullopt; }
  /// Whether groups are the rows of the tensors (else all values are one group).
  virtual bool by_rows() const { return false; }
  /// Which of them it is; not one that goes by rows.
  virtual GroupCode group_code() const { return GroupCode::none; }
  /// How often a change has to be sent, its remainders with it, until most of it has arrived: what learns from copies
  /// learns so much more slowly.
  virtual double sends_to_settle() const { return 1.0; }
};

/// What encoded values are made of, in bytes; payload + index is the whole of it.
struct EncodedSize {
  std::size_t payload_bytes = 0;  ///< values
  std::size_t index_bytes = 0;    ///< positions
  std::size_t total() const { return payload_bytes + index_bytes; }
};

/// k values and their positions out of n as bytes: a PositionCoder's bytes, then a Quantiser's. None of n and all of n
/// need no positions, whatever the coder.
class Codec {
 public:
  Codec(std::unique_ptr<PositionCoder> positions, std::unique_ptr<Quantiser> quantiser)
      : positions_(std::move(positions)), quantiser_(std::move(quantiser)) {}

  bool exact() const { return quantiser_->exact(); }
  double sends_to_settle() const { return quantiser_->sends_to_settle(); }
  std::optional<StepRule> step_rule() const { return quantiser_->step_rule(); }
  GroupCode group_code() const { return quantiser_->group_code(); }
  /// Whether encode and decode look at `row_ends`.
  bool by_rows() const { return quantiser_->by_rows(); }
  /// Room that `encode` may need for any k ≤ count values out of n.
  std::size_t bound(std::size_t count, std::size_t n) const;
  /// `indices` ascending, < n; `values` the values at those positions; `row_ends` the ascending ends of the rows of the
  /// n positions, of which the last is n (needed by quantisers that go by rows; empty: one row). `out` has room for
  /// what is written, as bound(k, n) bytes always are. `step`: Quantiser::encode has it.
  EncodedSize encode(std::span<const std::uint32_t> indices, std::span<const float> values, std::size_t n,
                     std::span<const std::uint32_t> row_ends, std::span<std::byte> out, float step = 0.0F) const;
  /// The same where the values have a GroupCode and a device has written them: `payload`, of `payload_bytes(k)` bytes.
  EncodedSize encode_positions(std::span<const std::uint32_t> indices, std::size_t count, std::size_t n,
                               std::span<const std::byte> payload, std::span<std::byte> out) const;
  std::size_t payload_bytes(std::size_t count) const {
    return quantiser_->bound(count, std::min<std::size_t>(count, 1));
  }
  /// Inverse of that: returns how many bytes the positions take; those of the values are behind them. Throws as decode.
  std::size_t decode_positions(std::span<const std::byte> in, std::size_t count, std::size_t n,
                               std::vector<std::uint32_t>& indices) const;
  /// Inverse of encode for `count` values, the quantiser's rounding apart; returns what `in` is made of. Any bytes are
  /// safe: throws CommunicationError if they are not an encoding; `indices` and `values` then hold nothing of use.
  EncodedSize decode(std::span<const std::byte> in, std::size_t count, std::size_t n,
                     std::span<const std::uint32_t> row_ends, std::vector<std::uint32_t>& indices,
                     std::vector<float>& values) const;

 private:
  std::unique_ptr<PositionCoder> positions_;
  std::unique_ptr<Quantiser> quantiser_;
};

using SelectorEntry = Entry<Selector>;
using PositionCoderEntry = Entry<PositionCoder>;
using QuantiserEntry = Entry<Quantiser>;
std::span<const SelectorEntry> selectors();
std::span<const PositionCoderEntry> position_coders();
std::span<const QuantiserEntry> quantisers();

/// The section `sparsify:` read whole: what is selected, where, and how it is written.
struct Sparsifier {
  std::unique_ptr<Selector> selector;  ///< never null; entry `dense` keeps everything
  std::shared_ptr<const Codec> codec;
  std::string_view name{};         ///< the selector's, as in its table
  bool dense = false;              ///< the selector is `dense`: whole segments can travel without positions
  bool per_segment = false;        ///< k = kept_count(ρ, n_s) of every segment; else of the whole block
  std::size_t dense_below = 0;     ///< segments of fewer values are sent whole
  std::vector<double> schedule{};  ///< densities of the first epochs, before the selector's own
  std::optional<StepRule> news{};  ///< values that have left the dead zone travel, and nothing is selected beside

  /// The same with a selector of its own, which remembers nothing: one Sparsifier is the plan of many.
  Sparsifier fresh() const;
  /// ρ in the given epoch.
  double density(double epoch) const;
  /// The largest ρ of any epoch: what a mailbox must have room for.
  double largest_density() const;
};

/// What an exchange assumes where `sparsify:` is silent or cannot be otherwise.
struct SparsifierDefaults {
  std::string_view selector = "dense";
  bool per_segment = true;      ///< default of `selector.scope`
  bool scope_is_fixed = false;  ///< `selector.scope` is then no key
  std::string_view quantiser = "none";
  bool news = false;  ///< it can send what is news (SumStep): a quantiser that counts in steps then has selector dense
};
/// Reads `selector: {name, …, scope, dense_below}`, `codec: {name, …}`, `quantiser: {name, …}` and `density_schedule`.
/// A schedule for a selector that has no density is an error of the configuration.
Sparsifier read_sparsifier(Config& sparsify, const SparsifierDefaults& defaults);

}  // namespace hearsay
