// hearsay list, describe, compare and --version: what apps/tools says, on stdout.
#include <torch/version.h>  // macros only

#include "apps/hearsay/commands.hpp"
#include "apps/hearsay/program_catalogue.hpp"
#include "apps/shared/output.hpp"
#include "apps/tools/tools.hpp"

namespace hearsay {
namespace {

int printed(const std::string& text) {
  print(text);
  return 0;
}

}  // namespace

int list_command(const std::optional<std::string>& wanted) { return printed(list_text(program_catalogue(), wanted)); }

int describe_command(const std::vector<std::string>& names, bool markdown) {
  return printed(markdown ? markdown_text(program_catalogue(), names) : describe_text(program_catalogue(), names));
}

int compare_command(const std::vector<std::filesystem::path>& directories, bool json) {
  return printed(compare_text(directories, json));
}

int version_command() { return printed(version_text({{"LibTorch", TORCH_VERSION}})); }

}  // namespace hearsay
