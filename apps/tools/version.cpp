// What this is: versions, compiler and build.
#include "apps/shared/text.hpp"
#include "apps/tools/tools.hpp"
#include "hearsay_version.hpp"
#include "runtime/mpi/environment.hpp"

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

std::string version_text(const std::vector<std::pair<std::string, std::string>>& libraries) {
  std::string text;
  const auto line = [&text](const std::string& name, const std::string& value) {
    text += pad_right(name, 10) + value + "\n";
  };
  line("hearsay", std::string(full_version));
  line("MPI", mpi::Environment::library_version());
  for (const auto& [name, of_library] : libraries) line(name, of_library);
  line("compiler", compiler());
  line("build", build_type());
  return text;
}

}  // namespace hearsay
