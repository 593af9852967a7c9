// hearsay list, describe, compare and --version: what apps/tools says, on stdout.
#include <torch/version.h>  // macros only

#include <cstdio>

#include "apps/hearsay/commands.hpp"
#include "apps/hearsay/program_catalogue.hpp"
#include "apps/tools/tools.hpp"

namespace hearsay {
namespace {

int print(const std::string& text) {
  std::printf("%s", text.c_str());
  return 0;
}

}  // namespace

int list_command(const std::optional<std::string>& wanted) { return print(list_text(program_catalogue(), wanted)); }

int describe_command(const std::vector<std::string>& names, bool markdown) {
  return print(markdown ? markdown_text(program_catalogue(), names) : describe_text(program_catalogue(), names));
}

int compare_command(const std::vector<std::filesystem::path>& directories, bool json) {
  return print(compare_text(directories, json));
}

int version_command() { return print(version_text({{"LibTorch", TORCH_VERSION}})); }

}  // namespace hearsay
