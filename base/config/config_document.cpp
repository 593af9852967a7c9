// The whole of a configuration: what is set on top of it, what is wrong with it, and how it is written.
#include "base/config/config_state.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/config/nearest.hpp"

namespace hearsay {
namespace {

[[noreturn]] void refuse_argument(const std::string& argument, const std::string& message) {
  throw ConfigError(argument + ": " + message, {{.source = argument, .message = message}});
}

/// The mapping that a dotted key's last word belongs to; null values on the way become mappings.
/// Throws ConfigError at a word that holds something else.
YamlValue& mapping_around(YamlValue& root, const std::vector<std::string>& words, const Position& position,
                          const std::string& argument) {
  YamlValue* value = &root;
  std::string path;
  for (std::size_t i = 0;; ++i) {
    if (value->kind == YamlValue::Kind::null) value->kind = YamlValue::Kind::mapping;
    if (value->kind != YamlValue::Kind::mapping)
      refuse_argument(argument, "'" + path + "' is " + value->shown() + ", not a mapping; set '" + path +
                                    "' itself or choose another key");
    if (i + 1 == words.size()) return *value;
    path += (i == 0 ? "" : ".") + words[i];
    if (value->find(words[i]) == nullptr)
      value->members.push_back({words[i], position, {.position = position, .members = {}}});
    value = &value->find(words[i])->value;
  }
}

std::vector<std::string> split_at_dots(const std::string& key) {
  std::vector<std::string> words;
  std::istringstream stream(key + ".");
  for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
  return words;
}

/// Whether the document says all of this, and nothing of it was set on top of it.
bool is_of_document(const YamlValue& value) {
  if (value.position.source > 0) return false;
  return std::ranges::all_of(value.members, [](const YamlMember& m) { return is_of_document(m.value); });
}

}  // namespace

constexpr std::size_t most_shown = 100;  // errors of one document

std::string comma_separated(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

std::filesystem::path working_directory() {
  std::error_code error;
  auto directory = std::filesystem::current_path(error);
  if (error) throw DataError("the working directory cannot be found (" + error.message() + "); go to one that exists");
  return directory;
}

const Config::Mapping::Asked* Config::Mapping::find_asked(std::string_view key) const {
  const auto found = std::find_if(asked.begin(), asked.end(), [&](const Asked& a) { return a.description.key == key; });
  return found == asked.end() ? nullptr : &*found;
}

void Config::Mapping::remember(KeyDescription description, std::string yaml) {
  if (const Asked* before = find_asked(description.key)) {
    const KeyDescription& old = before->description;
    const bool one_value = before->section == nullptr && !before->is_list;
    if (!one_value || old.type != description.type || old.fallback != description.fallback)
      throw std::logic_error("the key '" + full(description.key) + "' is asked for in two ways");
    return;
  }
  asked.push_back({std::move(description), std::move(yaml)});
}

std::vector<const YamlMember*> Config::Mapping::unknown_members(bool of_overridden_choice) const {
  std::vector<const YamlMember*> unknown;
  if (value == nullptr || name_unknown) return unknown;
  for (const YamlMember& member : value->members) {
    if (find_asked(member.key) != nullptr || std::ranges::find(disregarded, member.key) != disregarded.end()) continue;
    const bool was_known = document.rehearsal != nullptr && document.rehearsal->was_asked(path, member.key);
    if (of_overridden_choice == (was_known && is_of_document(member.value))) unknown.push_back(&member);
  }
  return unknown;
}

void Config::Mapping::report_unknown_keys(std::vector<YamlProblem>& problems) const {
  std::vector<std::string> known;
  for (const Asked& a : asked) known.push_back(a.description.key);
  for (const YamlMember* member : unknown_members(false)) {
    std::string message = "unknown key";
    if (const auto reason = reasons.find(member->key); reason != reasons.end())
      message = reason->second;
    else if (const std::string near = nearest(member->key, known); !near.empty())
      message += ", did you mean '" + near + "'?";
    else if (!known.empty())
      message += "; known: " + comma_separated(known);
    problems.push_back({member->position, full(member->key), message});
  }
}

bool ConfigDocument::State::was_asked(std::string_view path, std::string_view key) const {
  return std::ranges::any_of(mappings,
                             [&](const Config::Mapping& m) { return m.path == path && m.find_asked(key) != nullptr; });
}

/// A key with its list: every mapping begins with a dash.
void Config::Mapping::append_list(std::string& out, const std::string& indent, const Asked& list, Written write) {
  out += indent + list.description.key + (list.items.empty() ? ": []\n" : ":\n");
  for (const Mapping* item : list.items) {
    std::string keys;
    (item->*write)(keys, indent + "    ");
    if (keys.empty())
      keys = indent + "  - {}\n";
    else
      keys[indent.size() + 2] = '-';
    out += keys;
  }
}

void Config::Mapping::dump(std::string& out, const std::string& indent) const {
  for (const Asked& a : asked) {
    if (std::ranges::find(disregarded, a.description.key) != disregarded.end()) continue;
    if (a.is_list) {
      append_list(out, indent, a, &Mapping::dump);
      continue;
    }
    out += indent + a.description.key + ":";
    if (a.section == nullptr) {
      out += " " + a.yaml + "\n";
    } else if (a.section->asked.empty()) {
      out += " {}\n";
    } else {
      out += "\n";
      a.section->dump(out, indent + "  ");
    }
  }
}

void Config::Mapping::append_given(std::string& out, const std::string& indent) const {
  for (const Asked& a : asked) {
    if (find(a.description.key) == nullptr) continue;
    std::string section;
    if (a.section != nullptr) a.section->append_given(section, indent + "  ");
    if (a.is_list)
      append_list(out, indent, a, &Mapping::append_given);
    else if (a.section == nullptr)
      out += indent + a.description.key + ": " + a.yaml + "\n";
    else if (!section.empty())
      out += indent + a.description.key + ":\n" + section;
  }
}

void Config::Mapping::append_keys(std::vector<KeyDescription>& keys, const std::string& prefix) const {
  for (const Asked& a : asked) {
    if (a.section != nullptr) {
      a.section->append_keys(keys, prefix + a.description.key + ".");
    } else {
      keys.push_back(a.description);
      keys.back().key.insert(0, prefix);
    }
  }
}

void ConfigDocument::override_with(const std::string& assignment, const std::string& place) {
  if (state_->mappings.size() > 1 || !state_->mappings.front().asked.empty())
    throw std::logic_error("a configuration is overridden before it is read");
  const std::size_t equals = assignment.find('=');
  const std::vector<std::string> words = split_at_dots(assignment.substr(0, equals));
  const std::string argument = shown(place.empty() ? "--set " + assignment : place);
  if (equals == std::string::npos || std::find(words.begin(), words.end(), "") != words.end())
    refuse_argument(argument, "expected key=value, such as trigger.horizon=0.95");
  if (state_->overrides.empty()) state_->plain_root = state_->root;
  state_->overrides.push_back(argument);
  const Position position{static_cast<int>(state_->overrides.size()), 1, 1};
  std::vector<YamlProblem> problems;
  YamlValue value;
  try {
    value = parse_yaml(assignment.substr(equals + 1), position.source, problems);
  } catch (const YamlProblem& problem) {
    problems.push_back(problem);
  }
  if (!problems.empty()) state_->refuse(problems.front());
  YamlValue& mapping = mapping_around(state_->root, words, position, argument);
  if (YamlMember* member = mapping.find(words.back()))
    *member = {words.back(), position, std::move(value)};
  else
    mapping.members.push_back({words.back(), position, std::move(value)});
}

void ConfigDocument::rehearse(const std::function<void(Config)>& read) {
  if (state_->overrides.empty()) return;
  auto document = std::make_shared<State>();
  document->origin = state_->origin;
  document->directory = state_->directory;
  document->root = state_->plain_root;
  document->is_rehearsal = true;
  document->mappings.push_back({*document, "", &document->root, document->root.position});
  try {
    read({ConfigDocument(document), &document->mappings.front()});
  } catch (const Error&) {  // what is wrong with the document by itself may be what is overridden
  }
  state_->rehearsal = std::move(document);
}

void ConfigDocument::suggest(const std::string& key, const std::string& yaml) {
  const std::size_t dot = key.rfind('.');
  const std::string mapping = dot == std::string::npos ? "" : key.substr(0, dot);
  if (state_->was_asked(mapping, key.substr(dot + 1)))
    throw std::logic_error("the key '" + key + "' is given a default after it was read");
  std::vector<YamlProblem> problems;
  state_->suggested.insert_or_assign(key, parse_yaml(yaml, 0, problems));
  if (!problems.empty()) throw std::logic_error("the default of '" + key + "' is not YAML: " + yaml);
}

void ConfigDocument::provide(const std::string& name, std::any thing) { state_->provided[name] = std::move(thing); }

const std::any* ConfigDocument::provided(const std::string& name) const {
  const auto found = state_->provided.find(name);
  return found == state_->provided.end() ? nullptr : &found->second;
}

std::vector<std::string> ConfigDocument::notes() const {
  std::vector<std::string> notes = state_->notes;
  for (const Config::Mapping& mapping : state_->mappings)
    for (const YamlMember* member : mapping.unknown_members(true))
      notes.push_back(state_->place(member->position) + ": " + mapping.full(member->key) +
                      " is left out: what was set on top of the configuration does not know it");
  return notes;
}

void ConfigDocument::throw_if_invalid() const {
  if (state_->is_rehearsal) throw ConfigError("a configuration is rehearsed");
  std::vector<YamlProblem> problems = state_->problems;
  for (const Config::Mapping& mapping : state_->mappings) mapping.report_unknown_keys(problems);
  if (problems.empty()) return;
  std::sort(problems.begin(), problems.end());
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  const std::string count = std::to_string(problems.size()) + (problems.size() == 1 ? " error" : " errors");
  std::string message = "invalid configuration (" + count + ")";
  for (std::size_t i = 0; i < std::min(problems.size(), most_shown); ++i) message += "\n  " + state_->line(problems[i]);
  if (problems.size() > most_shown)
    message += "\n  and " + std::to_string(problems.size() - most_shown) + " more, in the same order";
  std::vector<ConfigProblem> all;
  for (const YamlProblem& problem : problems) all.push_back(state_->problem(problem));
  throw ConfigError(message, std::move(all));
}

std::string ConfigDocument::dump() const {
  std::string out;
  state_->mappings.front().dump(out, "");
  return out.empty() ? "{}\n" : out;
}

std::string ConfigDocument::given() const {
  std::string out;
  state_->mappings.front().append_given(out, "");
  return out.empty() ? "{}\n" : out;
}

}  // namespace hearsay
