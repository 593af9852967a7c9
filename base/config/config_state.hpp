#pragma once
// What a Config remembers of its document: private to the sources beside it.
#include <any>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/config/config.hpp"
#include "base/config/yaml.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {

/// "a, b, c"
std::string comma_separated(const std::vector<std::string>& words);

/// Throws DataError where it was removed.
std::filesystem::path working_directory();

struct ConfigDocument::State {
  std::string origin;                  // the file's name, as messages show it
  std::filesystem::path directory;     // absolute; what a path in the document is relative to
  YamlValue root;                      // not changed once something was read: mappings point into it
  YamlValue plain_root{};              // before anything was set on top of it
  std::vector<std::string> overrides;  // source n of a Position is overrides[n − 1], as messages show it
  std::vector<YamlProblem> problems;
  std::vector<std::string> notes{};
  std::map<std::string, std::any> provided{};    // by the program
  std::map<std::string, YamlValue> suggested{};  // by what was read before
  std::deque<Config::Mapping> mappings;          // the first is the root's; a deque does not move them
  std::shared_ptr<const State> rehearsal{};      // this document, read without what was set on top of it
  bool is_rehearsal = false;

  std::string place(const Position& p) const {
    if (p.source > 0) return shown(shortened(overrides[static_cast<std::size_t>(p.source) - 1]));
    return origin + ":" + std::to_string(p.line) + ":" + std::to_string(p.column);
  }
  static std::string message(const YamlProblem& p) {
    return (p.path.empty() ? "" : shown(shortened(p.path)) + ": ") + p.message;
  }
  std::string line(const YamlProblem& p) const { return place(p.position) + ": " + message(p); }
  ConfigProblem problem(const YamlProblem& p) const {
    if (p.position.source > 0) return {.source = place(p.position), .message = message(p)};
    return {.source = origin, .line = p.position.line, .column = p.position.column, .message = message(p)};
  }
  /// One problem, after which nothing more is read.
  [[noreturn]] void refuse(const YamlProblem& p) const { throw ConfigError(line(p), {problem(p)}); }
  /// Whether `key` of the mapping `path` was asked for.
  bool was_asked(std::string_view path, std::string_view key) const;
};

struct Config::Mapping {
  struct Asked {
    KeyDescription description;
    std::string yaml;            // the value in force, as dump() writes it
    Mapping* section = nullptr;  // set for a section, whose description has only the key
    bool is_list = false;        // of mappings
    std::vector<Mapping*> items{};
  };

  ConfigDocument::State& document;
  std::string path;           // dotted, "" for the root
  const YamlValue* value;     // null if the document has no such mapping
  Position position;          // its place, or that of the nearest mapping around it
  std::deque<Asked> asked{};  // in order
  bool name_unknown = false;  // `name` asked for an algorithm that does not exist: its keys cannot be judged
  std::map<std::string, std::string> reasons{};  // what to say of a key that nobody asks for
  std::vector<std::string> disregarded{};        // keys for another program

  const YamlMember* find(std::string_view key) const { return value == nullptr ? nullptr : value->find(key); }
  /// What the document says of `key`, else what was suggested; null where neither does.
  const YamlValue* find_value(std::string_view key) const {
    if (const YamlMember* member = find(key)) return &member->value;
    const auto suggestion = document.suggested.find(full(key));
    return suggestion == document.suggested.end() ? nullptr : &suggestion->second;
  }
  Position position_of(std::string_view key) const {
    const YamlMember* member = find(key);
    return member == nullptr ? position : member->position;
  }
  std::string full(std::string_view key) const {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
  void complain(const Position& at, std::string full_key, std::string message) const {
    document.problems.push_back({at, std::move(full_key), std::move(message)});
  }

  const Asked* find_asked(std::string_view key) const;
  void remember(KeyDescription description, std::string yaml);
  /// Members that nobody has asked for: those that belonged to a choice that is overridden, or all others.
  std::vector<const YamlMember*> unknown_members(bool of_overridden_choice) const;
  void report_unknown_keys(std::vector<YamlProblem>& problems) const;
  void dump(std::string& out, const std::string& indent) const;
  void append_given(std::string& out, const std::string& indent) const;
  using Written = void (Mapping::*)(std::string& out, const std::string& indent) const;
  static void append_list(std::string& out, const std::string& indent, const Asked& list, Written write);
  void append_keys(std::vector<KeyDescription>& keys, const std::string& prefix) const;

  template <class T, class Convert, class Write>
  T ask(KeyDescription description, T fallback, Convert convert, Write write);
};

}  // namespace hearsay
