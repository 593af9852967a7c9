#include "base/config/config.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/config/config_document.hpp"
#include "base/config/nearest.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"

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

// ---------------------------------------------------------------- one mapping

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

bool Config::Document::was_asked(std::string_view path, std::string_view key) const {
  return std::ranges::any_of(mappings,
                             [&](const Mapping& m) { return m.path == path && m.find_asked(key) != nullptr; });
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

// ---------------------------------------------------------------- Range

bool Range::contains(double x) const {
  const bool high_enough = min_excluded ? x > min : x >= min;
  const bool low_enough = max_excluded ? x < max : x <= max;
  return high_enough && low_enough;
}

std::string Range::description() const {
  const bool from = std::isfinite(min);
  const bool to = std::isfinite(max);
  if (from && to)
    return std::string("in ") + (min_excluded ? "(" : "[") + yaml_real(min) + ", " + yaml_real(max) +
           (max_excluded ? ")" : "]");
  if (from) return (min_excluded ? "> " : ">= ") + yaml_real(min);
  if (to) return (max_excluded ? "< " : "<= ") + yaml_real(max);
  return "";
}

// ---------------------------------------------------------------- Config

Config::Config() : Config(from_text("")) {}

Config Config::from_file(const std::filesystem::path& file) {
  Config config =
      from_text(plain_file_text(file, most_yaml_bytes, "name an existing configuration file (YAML)"), file.string());
  config.document_->directory = (working_directory() / file).parent_path();
  return config;
}

Config Config::from_text(const std::string& yaml, const std::string& origin) {
  auto document = std::make_shared<Document>();
  document->origin = origin;
  document->directory = working_directory();
  try {
    document->root = parse_yaml(yaml, 0, document->problems);
  } catch (const YamlProblem& problem) {
    document->refuse(problem);
  }
  const YamlValue& root = document->root;
  if (root.kind != YamlValue::Kind::null && root.kind != YamlValue::Kind::mapping)
    document->refuse({root.position, "", "expected `key: value` lines, got " + root.shown()});
  document->mappings.push_back({*document, "", &root, root.position});
  Mapping* mapping = &document->mappings.front();
  return {std::move(document), mapping};
}

void Config::override_with(const std::string& assignment, const std::string& place) {
  if (document_->mappings.size() > 1 || !mapping_->asked.empty())
    throw std::logic_error("a configuration is overridden before it is read");
  const std::size_t equals = assignment.find('=');
  const std::vector<std::string> words = split_at_dots(assignment.substr(0, equals));
  const std::string argument = shown(place.empty() ? "--set " + assignment : place);
  if (equals == std::string::npos || std::find(words.begin(), words.end(), "") != words.end())
    refuse_argument(argument, "expected key=value, such as trigger.horizon=0.95");
  if (document_->overrides.empty()) document_->plain_root = document_->root;
  document_->overrides.push_back(argument);
  const Position position{static_cast<int>(document_->overrides.size()), 1, 1};
  std::vector<YamlProblem> problems;
  YamlValue value;
  try {
    value = parse_yaml(assignment.substr(equals + 1), position.source, problems);
  } catch (const YamlProblem& problem) {
    problems.push_back(problem);
  }
  if (!problems.empty()) document_->refuse(problems.front());
  YamlValue& mapping = mapping_around(document_->root, words, position, argument);
  if (YamlMember* member = mapping.find(words.back()))
    *member = {words.back(), position, std::move(value)};
  else
    mapping.members.push_back({words.back(), position, std::move(value)});
}

void Config::rehearse(const std::function<void(Config)>& read) {
  if (document_->overrides.empty()) return;
  auto document = std::make_shared<Document>();
  document->origin = document_->origin;
  document->directory = document_->directory;
  document->root = document_->plain_root;
  document->is_rehearsal = true;
  document->mappings.push_back({*document, "", &document->root, document->root.position});
  try {
    read({document, &document->mappings.front()});
  } catch (const Error&) {  // what is wrong with the document by itself may be what is overridden
  }
  document_->rehearsal = std::move(document);
}

void Config::suggest(const std::string& key, const std::string& yaml) {
  const std::size_t dot = key.rfind('.');
  const std::string mapping = dot == std::string::npos ? "" : key.substr(0, dot);
  if (document_->was_asked(mapping, key.substr(dot + 1)))
    throw std::logic_error("the key '" + key + "' is given a default after it was read");
  std::vector<YamlProblem> problems;
  document_->suggested.insert_or_assign(key, parse_yaml(yaml, 0, problems));
  if (!problems.empty()) throw std::logic_error("the default of '" + key + "' is not YAML: " + yaml);
}

Config Config::section(std::string_view key) {
  if (const Mapping::Asked* before = mapping_->find_asked(key)) {
    if (before->section == nullptr) throw std::logic_error("'" + mapping_->full(key) + "' is asked for in two ways");
    return {document_, before->section};
  }
  const std::string path = mapping_->full(key);
  Mapping section{*document_, path, nullptr, mapping_->position};
  if (const YamlMember* member = mapping_->find(key)) {
    const YamlValue& value = member->value;
    section.position = member->position;
    if (value.kind == YamlValue::Kind::mapping)
      section.value = &value;
    else if (value.kind != YamlValue::Kind::null)
      mapping_->complain(value.position, path, "expected a mapping such as {name: value}, got " + value.shown());
  }
  document_->mappings.push_back(std::move(section));
  mapping_->asked.push_back({{std::string(key), "", "", "", ""}, "", &document_->mappings.back()});
  return {document_, &document_->mappings.back()};
}

std::vector<Config> Config::sections(std::string_view key, std::string_view meaning) {
  const std::string path = mapping_->full(key);
  const Mapping::Asked* asked = mapping_->find_asked(key);
  if (asked != nullptr && !asked->is_list) throw std::logic_error("'" + path + "' is asked for in two ways");
  if (asked == nullptr) {
    Mapping::Asked list{.description = {std::string(key), "list of mappings", "[]", "", std::string(meaning)},
                        .yaml = "",
                        .is_list = true};
    const YamlMember* member = mapping_->find(key);
    const bool is_list = member != nullptr && member->value.kind == YamlValue::Kind::sequence;
    if (member != nullptr && !is_list)
      mapping_->complain(member->value.position, path, "expected a list of mappings, got " + member->value.shown());
    for (std::size_t i = 0; is_list && i < member->value.items.size(); ++i) {
      const YamlValue& item = member->value.items[i];
      const std::string name = path + "[" + std::to_string(i) + "]";
      const bool is_mapping = item.kind == YamlValue::Kind::mapping;
      if (!is_mapping)
        mapping_->complain(item.position, name, "expected a mapping such as {name: value}, got " + item.shown());
      document_->mappings.push_back({*document_, name, is_mapping ? &item : nullptr, item.position});
      list.items.push_back(&document_->mappings.back());
    }
    asked = &mapping_->asked.emplace_back(std::move(list));
  }
  std::vector<Config> all;
  for (Mapping* item : asked->items) all.push_back({document_, item});
  return all;
}

bool Config::has(std::string_view key) const { return mapping_->find(key) != nullptr; }
bool Config::asked(std::string_view key) const { return mapping_->find_asked(key) != nullptr; }

void Config::require(bool holds, std::string_view key, const std::string& message) {
  if (!holds) mapping_->complain(mapping_->position_of(key), mapping_->full(key), message);
}

void Config::refuse(std::string_view key, const std::string& message) {
  mapping_->complain(mapping_->position_of(key), "", message);
}

void Config::provide(const std::string& name, std::any thing) { document_->provided[name] = std::move(thing); }

const std::any* Config::provided(const std::string& name) const {
  const auto found = document_->provided.find(name);
  return found == document_->provided.end() ? nullptr : &found->second;
}

void Config::explain_unknown(std::string_view key, const std::string& reason) {
  mapping_->reasons.insert_or_assign(std::string(key), reason);
}

std::vector<std::string> Config::unasked() const {
  std::vector<std::string> keys;
  if (mapping_->value == nullptr) return keys;
  for (const YamlMember& member : mapping_->value->members)
    if (mapping_->find_asked(member.key) == nullptr) keys.push_back(member.key);
  return keys;
}

void Config::disregard(std::string_view key) { mapping_->disregarded.emplace_back(key); }

void Config::note(const std::string& sentence) { document_->notes.push_back(sentence); }

std::vector<std::string> Config::notes() const {
  std::vector<std::string> notes = document_->notes;
  for (const Mapping& mapping : document_->mappings)
    for (const YamlMember* member : mapping.unknown_members(true))
      notes.push_back(document_->place(member->position) + ": " + mapping.full(member->key) +
                      " is left out: what was set on top of the configuration does not know it");
  return notes;
}

void Config::throw_if_invalid() const {
  if (document_->is_rehearsal) throw ConfigError("a configuration is rehearsed");
  std::vector<YamlProblem> problems = document_->problems;
  for (const Mapping& mapping : document_->mappings) mapping.report_unknown_keys(problems);
  if (problems.empty()) return;
  std::sort(problems.begin(), problems.end());
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  const std::string count = std::to_string(problems.size()) + (problems.size() == 1 ? " error" : " errors");
  std::string message = "invalid configuration (" + count + ")";
  for (std::size_t i = 0; i < std::min(problems.size(), most_shown); ++i)
    message += "\n  " + document_->line(problems[i]);
  if (problems.size() > most_shown)
    message += "\n  and " + std::to_string(problems.size() - most_shown) + " more, in the same order";
  std::vector<ConfigProblem> all;
  for (const YamlProblem& problem : problems) all.push_back(document_->problem(problem));
  throw ConfigError(message, std::move(all));
}

std::string Config::dump() const {
  std::string out;
  document_->mappings.front().dump(out, "");
  return out.empty() ? "{}\n" : out;
}

std::string Config::given() const {
  std::string out;
  document_->mappings.front().append_given(out, "");
  return out.empty() ? "{}\n" : out;
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

std::vector<KeyDescription> Config::keys() const {
  std::vector<KeyDescription> keys;
  mapping_->append_keys(keys, "");
  return keys;
}

}  // namespace hearsay
