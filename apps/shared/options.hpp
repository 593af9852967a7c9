#pragma once
// hearsay simulate: its command line, which the ordinary program and the simulator share.
#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hearsay {

struct SimulateArguments {
  std::filesystem::path config;
  std::vector<std::string> set;  ///< key=value, the shortcuts among them
  std::filesystem::path platform;
  int ranks = 0;
  std::optional<std::string> output;
  bool overwrite = false;
  std::optional<std::filesystem::path> simulator;  ///< the program that simulates; the ordinary one looks for it

  /// `set`, and what --output and --overwrite say in the same words.
  std::vector<std::string> assignments() const;
};

/// Declares arguments, options and help.
void add_simulate_options(CLI::App& command, SimulateArguments& arguments);

}  // namespace hearsay
