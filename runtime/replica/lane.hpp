#pragma once
// How a collective on the communication thread works on a block that lives on a device, beside the passes that the
// computing thread asks for: what comes from other ranks is added where the sum lives.
#include <cstddef>
#include <span>

namespace hearsay {

/// Two buffers of the processor's memory, through which parts of blocks go out and come in. Passes with one buffer are
/// done in the order in which they are asked for, those with different ones in any: they have different parts. One
/// thread asks for them, another one may call `follow`. Throws CommunicationError where the device fails.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Called by the device's own thread: what the device has been asked for so far is done before later passes of the
  /// lane. (The other way around: `wait`.)
  virtual void follow() = 0;
  /// The processor's to read and write after `wait`, until the next pass with it.
  virtual std::span<float> buffer(unsigned which) = 0;
  /// buffer ← values.
  virtual void fetch(std::span<const float> values, unsigned which) = 0;
  /// values ← buffer; both may be read meanwhile.
  virtual void put(unsigned which, std::span<float> values) = 0;
  /// values ← values + buffer;  buffer ← values.
  virtual void add(unsigned which, std::span<float> values) = 0;
  /// All passes with this buffer are done.
  virtual void wait(unsigned which) = 0;
};

}  // namespace hearsay
