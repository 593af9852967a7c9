#pragma once
// The one macro of the project: `HEARSAY_DEVICE` marks what nvcc compiles for the GPU and every other compiler for the
// processor. The same lines are thereby a kernel in one program and testable without a GPU in another.
#if defined(__CUDACC__)
#define HEARSAY_DEVICE __device__
#else
#define HEARSAY_DEVICE
#endif
