#pragma once
// Where a replica lives, and the passes over it there: the processor's memory, or a GPU's.
//
// An exchange is written once. What it wants to know of blocks, and what it does to them, it asks of the replica's Device;
// only what travels comes to the processor:
//
//   start:    ‖x_s‖ of all segments;  what of the fired ones is to travel → packet
//   finish:   packets → copies x̂_j;  x ← mix(x, x̂)
//
// Spans of floats lie in the device's memory, and nobody but the device may look at what is there, unless they are called
// `here`: these lie in the processor's. Passes are done in the order in which they are asked for, and what they bring
// `here` is there after `wait`. What a pass reads `here` it has read when the call returns. All calls come from one thread
// at a time. Whatever the device itself fails at throws CommunicationError.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/parameters.hpp"

namespace hearsay {

struct MixEdge;
struct Sparsifier;

/// Chooses what of a segment's change since it was last sent is to travel.
class ChangeSelection {
 public:
  virtual ~ChangeSelection() = default;
  /// Asks for k positions of segment s, of as many values as it has, by the changes x − copy. Both must stay as they
  /// are until `take`.
  virtual void begin(SegmentId s, std::span<const float> x, std::span<const float> copy, std::size_t k) = 0;
  /// After `Device::wait`: the positions that `begin` asked for, ascending within the segment, and what is there: of x
  /// if the codec is exact, else of the changes. Throws DivergenceError (position and value) if one is not finite.
  virtual void take(SegmentId s, std::vector<std::uint32_t>& positions, std::vector<float>& values) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  /// Whether its memory is the processor's, for everybody to look at.
  virtual bool is_processor() const { return false; }

  /// `length` zeros. The device must outlive the block.
  virtual FloatBlock block(std::size_t length) = 0;
  virtual void copy(std::span<const float> from, std::span<float> to) = 0;
  /// here ← values, of as many bytes.
  virtual void fetch(std::span<const float> values, std::span<std::byte> here) = 0;
  /// values ← here.
  virtual void put(std::span<const std::byte> here, std::span<float> values) = 0;
  /// All passes so far are done.
  virtual void wait() {}

  /// norms[s] ← ‖x_s‖₂ of a block with these segments; done when the call returns. NaN or ∞ if a value is.
  using Norms = std::function<void(std::span<const float> x, std::span<double> norms)>;
  virtual Norms norms(const Layout& layout) = 0;
  /// As the functions of these names in runtime/algorithms/neighbour/mixing/mixing.hpp, with the same bits.
  virtual void mix_row(float self_weight, std::span<const MixEdge> edges, std::span<float> x) = 0;
  virtual void add_differences(float step, std::span<const MixEdge> edges, std::span<float> x) = 0;
  virtual void add_difference(float weight, std::span<const float> theirs, std::span<const float> ours,
                              std::span<float> x) = 0;

  /// Whether it can choose as this sparsifier says. Exchanges that ask for what it cannot do run on a mirror.
  virtual bool selects(const Sparsifier& sparsifier) const = 0;
  /// For blocks with these segments. Layout and sparsifier must outlive the selection.
  virtual std::unique_ptr<ChangeSelection> select_changes(const Layout& layout, const Sparsifier& sparsifier) = 0;
  /// block[positions] ← here, or block[positions] ← block[positions] + here; positions are unique.
  virtual void set_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                           std::span<float> block) = 0;
  virtual void add_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                           std::span<float> block) = 0;

  /// Between the two the model and the optimizer work on the device's memory by means of their own. What they have been
  /// given to do is done before the passes that are asked for afterwards, and these before what they do next.
  virtual void begin_compute() {}
  virtual void end_compute() {}
};

/// The processor, with up to `threads` of them for long passes.
std::shared_ptr<Device> processor(int threads = 1);

/// The values, in the processor's memory.
std::vector<float> fetched(Device& device, std::span<const float> values);

/// The model's or the optimizer's turn on a device.
class ComputeTurn {
 public:
  explicit ComputeTurn(Device& device) : device_(device) { device_.begin_compute(); }
  ~ComputeTurn() {
    try {
      device_.end_compute();
    } catch (const CommunicationError&) {
      // A device that fails says so again at its next pass, where it can be told.
    }
  }
  ComputeTurn(const ComputeTurn&) = delete;
  ComputeTurn& operator=(const ComputeTurn&) = delete;

 private:
  Device& device_;
};

}  // namespace hearsay
