#pragma once
// GPUs, streams and device memory, without CUDA's headers. Whatever fails throws CommunicationError.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

struct CUstream_st;

namespace hearsay::device {

using StreamHandle = CUstream_st*;  ///< CUDA's cudaStream_t; null is the default stream

/// GPUs that can be used; 0 also where there is no driver.
int device_count();
/// Name of the current GPU.
std::string device_name();
/// Multiprocessors of the current GPU.
unsigned multiprocessors();
/// Waits until all work on the stream is done; reports what went wrong in it.
void synchronize(StreamHandle stream);

/// A stream of its own.
class Stream {
 public:
  Stream();
  StreamHandle handle() const { return stream_.get(); }

 private:
  struct Destroy {
    void operator()(StreamHandle stream) const;
  };
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

/// Bytes on the current GPU.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  void* data() const { return memory_.get(); }
  /// Copies between pageable host memory and the front of this memory; returns when done.
  void upload(const void* from, std::size_t bytes);
  void download(void* to, std::size_t bytes) const;

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::size_t bytes_ = 0;
  std::unique_ptr<void, Free> memory_;
};

/// `size` numbers of type T on the GPU; whatever is in it at first.
template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t size) : size_(size), memory_(size * sizeof(T)) {}
  T* data() { return static_cast<T*>(memory_.data()); }
  const T* data() const { return static_cast<const T*>(memory_.data()); }
  std::size_t size() const { return size_; }
  void upload(std::span<const T> from) { memory_.upload(from.data(), from.size_bytes()); }
  void download(std::span<T> to) const { memory_.download(to.data(), to.size_bytes()); }

 private:
  std::size_t size_ = 0;
  DeviceMemory memory_;
};

}  // namespace hearsay::device
