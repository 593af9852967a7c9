#pragma once
// Topologies by name, and temporary edge-list files.
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "topology/topology.hpp"

namespace hearsay::test {

/// `graph` and `weights` are names or YAML mappings.
inline Topology build(int ranks, const std::string& graph, const std::string& weights) {
  const auto mapping = [](const std::string& text) { return text.front() == '{' ? text : "{name: " + text + "}"; };
  Config config = Config::from_text("graph: " + mapping(graph) + "\nweights: " + mapping(weights));
  const TopologyPlan plan(config);
  config.document().throw_if_invalid();
  return plan.build(ranks);
}

/// The graph alone.
inline Graph build_graph(int ranks, const std::string& name, const std::string& keys = "") {
  for (const GraphEntry& entry : graphs())
    if (entry.name == name) {
      Config config = Config::from_text(keys);
      return entry.make(config)->build(ranks);
    }
  throw std::logic_error("no graph " + name);
}

/// A text file that is removed with the object.
class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("hearsay_edges_" + std::to_string(::getpid()) + "_" + std::to_string(std::hash<std::string>{}(text)))) {
    std::ofstream(path_) << text;
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { std::filesystem::remove(path_); }
  std::string name() const { return path_.string(); }
  /// `{name: edge_list, path: …}`
  std::string entry() const { return "{name: edge_list, path: " + name() + "}"; }

 private:
  std::filesystem::path path_;
};

/// The message of the exception of exactly type `Exception` that `action` throws; else "".
template <class Exception, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Exception& error) {
    return typeid(error) == typeid(Exception) ? error.what() : "";
  }
  return "";
}

}  // namespace hearsay::test
