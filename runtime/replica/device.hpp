#pragma once
// Where a replica lives, and the passes over it there: the processor's memory, or a GPU's.
//
// An exchange is written once. What it wants to know of blocks, and what it does to them, it asks of the replica's
// Device; only what travels comes to the processor:
//
//   start:    ‖x_s‖ or ‖x_s − x̂_s‖ of all segments;  what of the fired ones is to travel → packet
//   finish:   packets → copies x̂_j;  x ← mix(x, x̂)
//
// Spans of floats lie in the device's memory, and nobody but the device may look at what is there, unless they are
// called `here`: these lie in the processor's. Passes are done in the order in which they are asked for, and what they
// bring `here` is there after `wait`. What a pass reads `here` it has read when the call returns, unless that memory is
// pinned. All calls come from one thread at a time. Whatever the device itself fails at throws CommunicationError.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "runtime/replica/float_block.hpp"
#include "runtime/replica/lane.hpp"
#include "runtime/replica/layout.hpp"

namespace hearsay {

struct MixEdge;
struct Sparsifier;

/// Chooses what of a segment's change since it was last sent is to travel.
class ChangeSelection {
 public:
  virtual ~ChangeSelection() = default;
  /// Asks for k positions of segment s, of as many values as it has, by the changes x − copy; of these only for
  /// changes of at least `zone`. Both must stay as they are until `take`.
  virtual void begin(SegmentId s, std::span<const float> x, std::span<const float> copy, std::size_t k, float zone) = 0;
  /// After the last `begin`, before `Device::wait`: what was asked for is on its way.
  virtual void launch() {}
  /// After `Device::wait`: the positions that `begin` asked for, ascending within the segment, and what is there: of x
  /// if the codec is exact, else of the changes. Throws DivergenceError (position and value) if one is not finite.
  virtual void take(SegmentId s, std::vector<std::uint32_t>& positions, std::vector<float>& values) = 0;
};

/// Writes changes as a codec's values where the replica lives, so that only bytes and positions leave the device.
class ChangeQuantiser {
 public:
  virtual ~ChangeQuantiser() = default;
  /// Asks for k positions of segment s, of as many values as it has, by the changes x − copy. Both must stay as they
  /// are until `Device::wait`.
  virtual void begin(SegmentId s, std::span<const float> x, std::span<float> copy, std::size_t k) = 0;
  /// After the last `begin`, before `Device::wait`: what was asked for is on its way.
  virtual void launch() = 0;
  /// After `Device::wait`: the positions, ascending within the segment (none where all were asked for), and what
  /// Quantiser::encode writes of the changes there; both until the next `begin`. What decode reads of it has been
  /// added to the copy. Throws DivergenceError (position and value) if a change of the segment is not finite; the copy
  /// is then as it was.
  virtual std::span<const std::byte> take(SegmentId s, std::vector<std::uint32_t>& positions) = 0;

  /// What Quantiser::encode wrote of the changes of a segment: all of them, or `count`.
  struct Payload {
    std::span<float> copy;  ///< of the segment
    std::size_t count = 0;
    std::span<const std::byte> bytes{};
  };
  /// Adds what decode reads of them to their copies, of which none comes twice. `positions` of those that are not all
  /// of their segment, ascending, one after the other. Throws CommunicationError as decode; then nothing is added.
  virtual void add(std::span<const Payload> payloads, std::span<const std::uint32_t> positions) = 0;
};

/// Chooses what of a sum that grows travels, and moves it out: error feedback.
class SumSelection {
 public:
  virtual ~SumSelection() = default;
  /// r ← r + scale · addend, a whole block; then the positions that the sparsifier keeps of r at this density,
  /// ascending, and the values there, which are 0 in r from then on. Done when the call returns. Throws DivergenceError
  /// (segment, position and value) if a value is not finite.
  virtual void take(std::span<float> r, std::span<const float> addend, float scale, double density,
                    std::vector<std::uint32_t>& positions, std::vector<float>& values) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  /// Whether its memory is the processor's, for everybody to look at.
  virtual bool is_processor() const { return false; }

  /// `length` zeros. The device must outlive the block.
  virtual FloatBlock block(std::size_t length) = 0;
  virtual void copy(std::span<const float> from, std::span<float> to) = 0;
  /// block ← 0.
  virtual void clear(std::span<float> block) = 0;
  /// here ← values, of as many bytes.
  virtual void fetch(std::span<const float> values, std::span<std::byte> here) = 0;
  /// values ← here.
  virtual void put(std::span<const std::byte> here, std::span<float> values) = 0;
  /// All passes so far are done.
  virtual void wait() {}
  /// Copies between the device and this memory of the processor take one pass less from now on, as long as what is
  /// returned lives, which must end before the memory does. What is put from there has been read when `wait` returns,
  /// not before. Takes as long as some copies: for memory that is used again and again.
  virtual std::shared_ptr<void> pin(std::span<std::byte> here) {
    static_cast<void>(here);
    return nullptr;
  }

  /// norms[s] ← ‖x_s‖₂ of a block with these segments; done when the call returns. NaN or ∞ if a value is.
  using Norms = std::function<void(std::span<const float> x, std::span<double> norms)>;
  virtual Norms norms(const Layout& layout) = 0;
  /// norms[s] ← ‖x_s − y_s‖₂ of two such blocks, likewise. The differences are taken in float.
  using ChangeNorms = std::function<void(std::span<const float> x, std::span<const float> y, std::span<double> norms)>;
  virtual ChangeNorms change_norms(const Layout& layout) = 0;
  /// norms[s] ← max |x_i − y_i|, likewise. Unless a device has a pass of its own, on the processor.
  virtual ChangeNorms largest_changes(const Layout& layout);
  /// As the functions of these names in runtime/replica/mixing_passes.hpp, with the same bits.
  virtual void mix_row(float self_weight, std::span<const MixEdge> edges, std::span<float> x) = 0;
  virtual void add_differences(float step, std::span<const MixEdge> edges, std::span<float> x) = 0;
  virtual void add_difference(float weight, std::span<const float> theirs, std::span<const float> ours,
                              std::span<float> x) = 0;
  /// x ← x + weight · (theirs − ours) at these positions, which are unique.
  virtual void add_difference_at(std::span<const std::uint32_t> positions, float weight, std::span<const float> theirs,
                                 std::span<const float> ours, std::span<float> x) = 0;
  /// m = weight · (theirs − ours):  theirs ← theirs − m,  ours ← ours + m. With the two in the other order the same
  /// bits.
  virtual void close_difference(float weight, std::span<float> theirs, std::span<float> ours) = 0;
  /// The same at these positions, which are unique.
  virtual void close_difference_at(std::span<const std::uint32_t> positions, float weight, std::span<float> theirs,
                                   std::span<float> ours) = 0;

  /// x ← x / by.
  virtual void divide(float by, std::span<float> x) = 0;
  /// Momentum correction: u ← m u + scale g (Nesterov: u ← m (u + scale g)), and g ← what error feedback collects, u
  /// (u + scale g).
  virtual void add_momentum(float momentum, bool nesterov, float scale, std::span<float> g, std::span<float> u) = 0;

  /// For blocks with these segments. What GPUs cannot choose (`gpus_select_changes`), only the processor does. Layout
  /// and sparsifier must outlive the selection.
  virtual std::unique_ptr<ChangeSelection> select_changes(const Layout& layout, const Sparsifier& sparsifier) = 0;
  virtual std::unique_ptr<SumSelection> select_sums(const Layout& layout, const Sparsifier& sparsifier) = 0;
  /// Null: it cannot write these codes, and `select_changes` brings values.
  virtual std::unique_ptr<ChangeQuantiser> quantise_changes(const Layout& layout, const Sparsifier& sparsifier);
  /// block[positions] ← here, or block[positions] ← block[positions] + here; positions are unique.
  virtual void set_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                           std::span<float> block) = 0;
  virtual void add_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                           std::span<float> block) = 0;

  /// For one other thread, with buffers of so many values. It must not outlive the device. Null: every thread may look
  /// at the device's memory.
  virtual std::unique_ptr<Lane> lane(std::size_t most) {
    static_cast<void>(most);
    return nullptr;
  }

  /// Between the two the model and the optimizer work on the device's memory by means of their own. What they have been
  /// given to do is done before the passes that are asked for afterwards, and these before what they do next.
  virtual void begin_compute() {}
  virtual void end_compute() {}
};

/// What GPUs have kernels for: to choose what travels of changes, or of sums, as this sparsifier says, and to write and
/// read its codes. An exchange that asks for other choices runs on a mirror.
bool gpus_select_changes(const Sparsifier& sparsifier);
bool gpus_select_sums(const Sparsifier& sparsifier);
bool gpus_quantise(const Sparsifier& sparsifier);

/// The processor, with up to `threads` of them for long passes.
std::shared_ptr<Device> processor(int threads = 1);

/// The values, in the processor's memory.
std::vector<float> fetched(Device& device, std::span<const float> values);

/// Waits before memory goes that passes may be at work on. A device that fails says so at its next pass, where it can
/// be told.
void wait_before_leaving(Device& device) noexcept;

/// A block as the processor sees it: itself, or a copy in the processor's memory.
class View {
 public:
  View(Device& device, std::span<float> block)
      : device_(device),
        block_(block),
        copy_(device.is_processor() ? 0 : block.size()),
        pin_(device.pin(std::as_writable_bytes(std::span(copy_)))) {}
  std::span<float> span() { return device_.is_processor() ? block_ : std::span(copy_); }
  /// Values [offset, offset + length), up to date.
  std::span<float> fetch(std::size_t offset, std::size_t length) {
    const std::span<float> here = span().subspan(offset, length);
    if (!device_.is_processor()) {
      device_.fetch(block_.subspan(offset, length), std::as_writable_bytes(here));
      device_.wait();
    }
    return here;
  }
  /// block ← what is here, and stays as it is until the next `fetch`.
  void put() {
    if (!device_.is_processor()) device_.put(std::as_bytes(span()), block_);
  }

 private:
  Device& device_;
  std::span<float> block_;
  std::vector<float> copy_;
  std::shared_ptr<void> pin_;  // of the copy
};

/// The model's or the optimizer's time slice on a device.
class ComputeSlice {
 public:
  explicit ComputeSlice(Device& device) : device_(device) { device_.begin_compute(); }
  ~ComputeSlice() {
    try {
      device_.end_compute();
    } catch (const CommunicationError&) {
      // As in wait_before_leaving.
    }
  }
  ComputeSlice(const ComputeSlice&) = delete;
  ComputeSlice& operator=(const ComputeSlice&) = delete;

 private:
  Device& device_;
};

}  // namespace hearsay
