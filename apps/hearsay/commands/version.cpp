// hearsay --version
#include <torch/version.h>  // macros only

#include <cstdio>

#include "apps/hearsay/commands.hpp"
#include "apps/shared/text.hpp"
#include "hearsay_version.hpp"

namespace hearsay {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#elif defined(__GNUC__)
  return "GCC " __VERSION__;
#else
  return "unknown";
#endif
}

std::string build_type() {
  std::string type;
#if defined(__OPTIMIZE__)
  type += "optimised";
#else
  type += "not optimised";
#endif
#if defined(NDEBUG)
  type += ", no assertions";
#else
  type += ", assertions";
#endif
#if defined(__SANITIZE_ADDRESS__)
  type += ", address sanitizer";
#endif
#if defined(__SANITIZE_THREAD__)
  type += ", thread sanitizer";
#endif
  return type;
}

}  // namespace

int version_command() {
  const auto line = [](const char* name, const std::string& value) {
    std::printf("%s%s\n", pad_right(name, 10).c_str(), value.c_str());
  };
  line("hearsay", std::string(full_version));
  line("MPI", mpi::Environment::library_version());
  line("LibTorch", TORCH_VERSION);
  line("compiler", compiler());
  line("build", build_type());
  return 0;
}

}  // namespace hearsay
