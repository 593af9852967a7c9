#include "runtime/training/process/threads.hpp"

#include <dlfcn.h>
#include <torch/torch.h>

namespace hearsay {

void use_threads(int threads) {
  at::set_num_threads(threads);
  // Which BLAS there is is decided when the program is loaded, not when it is built.
  if (void* found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(found)(threads);
  }
}

}  // namespace hearsay
