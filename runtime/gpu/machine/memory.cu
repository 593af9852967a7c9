#include "runtime/gpu/machine/memory.hpp"

#include <cuda_runtime.h>

#include <stdexcept>

#include "base/error.hpp"
#include "runtime/gpu/machine/check.cuh"

namespace hearsay::device {

void check(cudaError_t code, const char* file, int line) {
  if (code == cudaSuccess) return;
  throw CommunicationError(std::string("CUDA: ") + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ") at " +
                           file + ":" + std::to_string(line) +
                           ". An earlier kernel may be the cause: run under compute-sanitizer "
                           "(docs/method/architecture.md).");
}

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string device_name() {
  int device = 0;
  check(cudaGetDevice(&device));
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

unsigned multiprocessors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return static_cast<unsigned>(count);
}

void synchronize(StreamHandle stream) { check(cudaStreamSynchronize(stream)); }

Stream::Stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);
}

void Stream::Destroy::operator()(StreamHandle stream) const { cudaStreamDestroy(stream); }

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes));
  memory_.reset(memory);
}

void DeviceMemory::Free::operator()(void* memory) const { cudaFree(memory); }

void DeviceMemory::upload(const void* from, std::size_t bytes) {
  if (bytes > bytes_) throw std::logic_error("device memory: an upload beyond its end");
  if (bytes == 0) return;
  check(cudaMemcpy(memory_.get(), from, bytes, cudaMemcpyHostToDevice));
  synchronize(nullptr);  // the copy may still be under way, and streams of their own do not wait for it
}

void DeviceMemory::download(void* to, std::size_t bytes) const {
  if (bytes > bytes_) throw std::logic_error("device memory: a download beyond its end");
  if (bytes > 0) check(cudaMemcpy(to, memory_.get(), bytes, cudaMemcpyDeviceToHost));
}

}  // namespace hearsay::device
