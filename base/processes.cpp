#include "base/processes.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <sstream>
#include <string_view>

namespace hearsay {
namespace {

void note(std::string_view entry, Variables& variables) {
  const auto equals = entry.find('=');
  if (equals != std::string_view::npos) variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
}

/// None if it cannot be read: what /proc says of a process that ends meanwhile fails in the middle, which the library
/// throws past the stream's own state.
std::optional<std::string> text_of(pid_t process, const char* file) try {
  std::ifstream in(std::filesystem::path("/proc") / std::to_string(process) / file, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(in), {}};
} catch (const std::ios_base::failure&) {
  return std::nullopt;
}

}  // namespace

Variables own_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) note(*entry, variables);
  return variables;
}

std::optional<Variables> first_variables(pid_t process) {
  const auto text = text_of(process, "environ");
  if (!text) return std::nullopt;
  Variables variables;
  std::istringstream in(*text);
  for (std::string entry; std::getline(in, entry, '\0');) note(entry, variables);
  return variables;
}

std::optional<ProcessStatus> status_of(pid_t process) {
  const std::string text = text_of(process, "stat").value_or("");  // "pid (any name) state parent …"
  const auto begin = text.find('('), end = text.rfind(')');
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  ProcessStatus status{.name = text.substr(begin + 1, end - begin - 1)};
  std::istringstream in(text.substr(end + 1));
  if (!(in >> status.state >> status.parent)) return std::nullopt;
  return status;
}

}  // namespace hearsay
