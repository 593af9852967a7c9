#include "runtime/collectives/gtopk_account.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hearsay {
namespace {

/// Every `shares`-th entry, so that members that hold the same list book each entry once and about equally many.
SparseVector part_of(const SparseVector& v, int share, int shares) {
  SparseVector part;
  for (auto i = static_cast<std::size_t>(share); i < v.size(); i += static_cast<std::size_t>(shares))
    part.push_back(v.indices[i], v.values[i]);
  return part;
}

}  // namespace

GTopKAccount::GTopKAccount(const SparseVector& own, const SparseWire& wire, const GTopKOptions& options)
    : own_(own), options_(options), survivors_(own.indices) {
  if (options.rule == ResidualRule::owner && !wire.exact())
    throw std::logic_error("gtopk: the residual rule `owner` with values that are rounded on the way");
}

SparseVector GTopKAccount::merge(const SparseVector& lower, const SparseVector& higher, int share, int shares) {
  SparseVector merged = sum(lower, higher);
  const SparseVector dropped = truncation_.keep_largest(merged, options_.k);
  SparseVector booked = part_of(dropped, share, shares);
  if (options_.rule == ResidualRule::published)  // lost twice with opposite signs is lost
    for (float& value : booked.values) value = std::abs(value);
  cut_off_ = sum(cut_off_, booked);
  return merged;
}

void GTopKAccount::rounded(const SparseVector& rest, int share, int shares) {
  rounded_ = sum(rounded_, part_of(rest, share, shares));
}

void GTopKAccount::survivors(std::span<const std::uint32_t> positions) {
  survivors_ = intersection(survivors_, positions);
}

GTopKResult GTopKAccount::finish(SparseVector result) {
  GTopKResult outcome;
  outcome.included = restricted(own_, options_.rule == ResidualRule::owner ? std::span(std::as_const(survivors_))
                                                                           : std::span(std::as_const(result.indices)));
  switch (options_.rule) {
    case ResidualRule::published:
      // Elsewhere the own values come back as they were, with what rounding has taken from them.
      rounded_ = restricted(rounded_, result.indices);
      outcome.returned = without(own_, result.indices);
      outcome.lost_mass = mass(restricted(cut_off_, result.indices));
      break;
    case ResidualRule::merger:
      outcome.returned = cut_off_;
      break;
    case ResidualRule::owner:
      outcome.returned = without(own_, survivors_);
      break;
  }
  outcome.returned = sum(outcome.returned, rounded_);
  outcome.result = std::move(result);
  return outcome;
}

std::vector<std::uint32_t> intersection(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  std::vector<std::uint32_t> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

std::vector<std::byte> flags_of(std::span<const std::uint32_t> asked, std::span<const std::uint32_t> alive) {
  std::vector<std::byte> flags((asked.size() + 7) / 8);
  auto next = alive.begin();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    while (next != alive.end() && *next < asked[i]) ++next;
    if (next != alive.end() && *next == asked[i]) flags[i / 8] |= std::byte{1} << (i % 8);
  }
  return flags;
}

OwnedMessage with_flags(std::span<const std::byte> flags, const OwnedMessage& message) {
  OwnedMessage joined{.bytes = {flags.begin(), flags.end()},
                      .payload_bytes = message.payload_bytes,
                      .index_bytes = message.index_bytes + flags.size()};
  joined.bytes.insert(joined.bytes.end(), message.bytes.begin(), message.bytes.end());
  return joined;
}

Told read_told(std::vector<std::byte> bytes, std::span<const std::uint32_t> sent, ResidualRule rule, int from) {
  if (rule != ResidualRule::owner) return {.alive = {}, .result = std::move(bytes)};
  const std::size_t flags = (sent.size() + 7) / 8;
  if (bytes.size() < flags)
    throw CommunicationError("gtopk: " + std::to_string(bytes.size()) + " bytes from rank " + std::to_string(from) +
                             ". The ranks run different configurations or versions");
  Told told;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if ((bytes[i / 8] & (std::byte{1} << (i % 8))) != std::byte{0}) told.alive.push_back(sent[i]);
  }
  told.result.assign(bytes.begin() + static_cast<std::ptrdiff_t>(flags), bytes.end());
  return told;
}

}  // namespace hearsay
