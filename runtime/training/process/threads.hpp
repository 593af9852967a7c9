#pragma once
// How many threads LibTorch computes with.

namespace hearsay {

/// Sets LibTorch's own number of threads and that of the BLAS under it, which reads its environment before `main`
/// begins and would otherwise start one thread a core in every rank.
void use_threads(int threads);

}  // namespace hearsay
