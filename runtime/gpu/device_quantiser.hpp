#pragma once
// Changes that are quantised on a device, with the kernels of runtime/gpu/kernels/quantise_algorithm.hpp: positions and
// code come to the processor, and nothing else does. So do payloads of others, on their way into the copies.
// Cost: one launch a packet, and one a segment of which some values are selected.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/gpu/device_selection.hpp"
#include "runtime/gpu/kernels/quantise_algorithm.hpp"
#include "sparsify/bytes.hpp"

namespace hearsay {

/// All segments that are begun are quantised together.
template <class Backend, class Code>
class DeviceQuantiser final : public ChangeQuantiser {
 public:
  DeviceQuantiser(Device& device, Backend& backend, Staging<Backend>& staging, const Layout& layout,
                  const Sparsifier& sparsifier)
      : device_(device),
        backend_(backend),
        staging_(staging),
        sparsifier_(sparsifier),
        searches_(layout.count()),
        asked_as_(layout.count()) {
    device::CodedRoom room{.runs = layout.count()};
    for (const Segment& s : layout.segments()) {
      const std::size_t most = kept_count(sparsifier.largest_density(), s.length);
      room.pieces += device::pieces_in(most), room.bytes += Quantise::bytes_of(most);
      longest_ = std::max(longest_, s.length);
    }
    make_room(room);
  }
  ~DeviceQuantiser() override { wait_before_leaving(device_); }
  DeviceQuantiser(const DeviceQuantiser&) = delete;
  DeviceQuantiser& operator=(const DeviceQuantiser&) = delete;

  void begin(SegmentId s, std::span<const float> x, std::span<float> copy, std::size_t k) override {
    const auto use = backend_.use();
    if (launched_) asked_.clear(), runs_.clear(), pieces_ = 0, bytes_ = 0, launched_ = false;
    asked_as_[s] = static_cast<std::uint32_t>(asked_.size());
    asked_.push_back({x, copy, bytes_, Quantise::bytes_of(k)});
    device::CodedRun run{.values = x.data(),
                         .minus = copy.data(),
                         .positions = nullptr,
                         .copy = copy.data(),
                         .failed = nullptr,
                         .count = k,
                         .code = bytes_,
                         .first_piece = pieces_};
    const Search how = sparsifier_.selector->next_search(k, x.size());
    if (k < x.size()) search(s, x, copy, how, run);
    runs_.push_back(run);
    pieces_ += static_cast<std::uint32_t>(device::pieces_in(k)), bytes_ += Quantise::bytes_of(k);
  }
  void launch() override {
    if (launched_ || runs_.empty()) return;
    const auto use = backend_.use();
    const auto count = static_cast<std::uint32_t>(runs_.size());
    staging_.send(std::as_bytes(std::span(runs_)), quantise_->runs());
    quantise_->write(backend_.machine(), count, pieces_);
    first_bad_.resize(count), payload_.resize(bytes_);
    staging_.bring(quantise_->first_bad(), std::as_writable_bytes(std::span(first_bad_)));
    staging_.bring(quantise_->bytes(), payload_);
    launched_ = true;
  }
  std::span<const std::byte> take(SegmentId s, std::vector<std::uint32_t>& positions) override {
    const Asked& asked = asked_[asked_as_[s]];
    const std::uint32_t bad = first_bad_[asked_as_[s]];
    if (bad != device::no_position) refuse_change(device_, asked.x, asked.copy, bad);
    positions.clear();
    if (runs_[asked_as_[s]].positions != nullptr) positions.swap(searches_[s]->positions);
    return std::span(payload_).subspan(asked.code, asked.bytes);
  }
  void add(std::span<const Payload> payloads, std::span<const std::uint32_t> positions) override {
    if (payloads.empty()) return;
    for (const Payload& payload : payloads) check(payload);
    const auto use = backend_.use();
    if (positions.size() > positions_there_.size()) {
      staging_.wait();  // passes under way read the old ones
      positions_there_ = Positions(positions.size() + positions.size() / 4);
    }
    const std::uint32_t pieces = gather(payloads);
    make_room({runs_in_.size(), pieces, bytes_in_.size()});
    staging_.send(std::as_bytes(positions), positions_there_.data());
    staging_.send(std::as_bytes(std::span(runs_in_)), quantise_->runs());
    staging_.send(bytes_in_, quantise_->bytes());
    quantise_->add(backend_.machine(), static_cast<std::uint32_t>(runs_in_.size()), pieces);
  }

 private:
  using Machine = typename Backend::Machine;
  using Quantise = device::Quantise<Machine, Code>;
  using Buffer = typename Machine::template Buffer<float>;
  using Positions = typename Machine::template Buffer<std::uint32_t>;
  struct Asked {
    std::span<const float> x, copy;
    std::uint64_t code, bytes;  // of the payload
  };

  /// The values of the run are those that are selected.
  void search(SegmentId s, std::span<const float> x, std::span<const float> copy, const Search& how,
              device::CodedRun& run) {
    auto& search = searches_[s];
    if (!search) search = std::make_unique<DeviceRun<Backend>>(sparsifier_, x.size());
    if (changes_.size() < x.size()) changes_ = Buffer(longest_);
    backend_.copy(x.data(), changes_.data(), x.size_bytes());
    search->begin(backend_.machine(), changes_.data(), copy.data(), -1.0F, run.count, how);
    search->bring_positions(staging_);
    run.values = search->found_values(), run.minus = nullptr;
    run.positions = search->found_positions(), run.failed = search->failed();
  }
  static void check(const Payload& payload) {
    if (payload.count > 0 || !payload.bytes.empty())
      require_bytes(Code::name, payload.count, Quantise::bytes_of(payload.count), payload.bytes.size());
    for (std::size_t level = 0; level < Code::levels_sent && payload.count > 0; ++level)
      load_level(payload.bytes, level * sizeof(float), Code::name, payload.count);
  }
  /// Puts payloads one behind the other; returns how many pieces they have.
  std::uint32_t gather(std::span<const Payload> payloads) {
    runs_in_.clear(), bytes_in_.clear();
    std::uint32_t pieces = 0;
    const std::uint32_t* next = positions_there_.data();
    for (const Payload& payload : payloads) {
      const bool all = payload.count == payload.copy.size();
      runs_in_.push_back({.values = nullptr,
                          .minus = nullptr,
                          .positions = all ? nullptr : next,
                          .copy = payload.copy.data(),
                          .failed = nullptr,
                          .count = payload.count,
                          .code = bytes_in_.size(),
                          .first_piece = pieces});
      bytes_in_.insert(bytes_in_.end(), payload.bytes.begin(), payload.bytes.end());
      pieces += static_cast<std::uint32_t>(device::pieces_in(payload.count));
      if (!all) next += payload.count;
    }
    return pieces;
  }
  /// Also for a packet of another rank, which may say more than this one would.
  void make_room(const device::CodedRoom& wanted) {
    if (room_.holds(wanted)) return;
    staging_.wait();  // passes under way use the old one
    room_ = room_.larger(wanted);
    quantise_ = std::make_unique<Quantise>(room_);
  }

  Device& device_;
  Backend& backend_;
  Staging<Backend>& staging_;
  const Sparsifier& sparsifier_;
  std::vector<std::unique_ptr<DeviceRun<Backend>>> searches_;  // of segments of which some values are selected
  device::CodedRoom room_;
  std::unique_ptr<Quantise> quantise_;
  Positions positions_there_;            // of what has come
  std::size_t longest_ = 0;              // of all segments
  Buffer changes_;                       // of one segment at a time, once some of its values are selected
  std::vector<std::uint32_t> asked_as_;  // of each segment: where it is among those asked for
  std::vector<Asked> asked_;
  std::vector<device::CodedRun> runs_, runs_in_;  // of what goes out, of what has come
  std::vector<std::uint32_t> first_bad_;
  std::vector<std::byte> payload_, bytes_in_;
  std::uint32_t pieces_ = 0;
  std::uint64_t bytes_ = 0;
  bool launched_ = false;  // what was asked for has been launched: the next `begin` is of another packet
};

}  // namespace hearsay
