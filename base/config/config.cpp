#include "base/config/config.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/config/config_state.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {

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

Config::Config() : Config(from_text("")) {}

Config Config::from_file(const std::filesystem::path& file) {
  Config config =
      from_text(plain_file_text(file, most_yaml_bytes, "name an existing configuration file (YAML)"), file.string());
  config.document_.state_->directory = (working_directory() / file).parent_path();
  return config;
}

Config Config::from_text(const std::string& yaml, const std::string& origin) {
  auto document = std::make_shared<ConfigDocument::State>();
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
  return {ConfigDocument(std::move(document)), mapping};
}

Config Config::section(std::string_view key) {
  if (const Mapping::Asked* before = mapping_->find_asked(key)) {
    if (before->section == nullptr) throw std::logic_error("'" + mapping_->full(key) + "' is asked for in two ways");
    return {document_, before->section};
  }
  const std::string path = mapping_->full(key);
  Mapping section{*document_.state_, path, nullptr, mapping_->position};
  if (const YamlMember* member = mapping_->find(key)) {
    const YamlValue& value = member->value;
    section.position = member->position;
    if (value.kind == YamlValue::Kind::mapping)
      section.value = &value;
    else if (value.kind != YamlValue::Kind::null)
      mapping_->complain(value.position, path, "expected a mapping such as {name: value}, got " + value.shown());
  }
  document_.state_->mappings.push_back(std::move(section));
  mapping_->asked.push_back({{std::string(key), "", "", "", ""}, "", &document_.state_->mappings.back()});
  return {document_, &document_.state_->mappings.back()};
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
      document_.state_->mappings.push_back({*document_.state_, name, is_mapping ? &item : nullptr, item.position});
      list.items.push_back(&document_.state_->mappings.back());
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

void Config::note(const std::string& sentence) { document_.state_->notes.push_back(sentence); }

std::vector<KeyDescription> Config::keys() const {
  std::vector<KeyDescription> keys;
  mapping_->append_keys(keys, "");
  return keys;
}

}  // namespace hearsay
