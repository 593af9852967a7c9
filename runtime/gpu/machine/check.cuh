#pragma once
#include <cuda_runtime.h>

namespace hearsay::device {

/// Throws CommunicationError, with the place and CUDA's own words, unless `code` is cudaSuccess.
void check(cudaError_t code, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace hearsay::device
