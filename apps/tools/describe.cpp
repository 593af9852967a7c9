// describe NAME…, describe --markdown KIND…
#include "apps/shared/text.hpp"
#include "apps/tools/tools.hpp"
#include "base/config/nearest.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

constexpr std::size_t width = 100;
constexpr std::size_t label_width = 12;

std::string field(std::string_view label, std::string_view text) {
  if (text.empty()) return "";
  return "  " + pad_right(label, label_width) + wrapped(text, width - 2 - label_width, 2 + label_width) + "\n";
}

/// "horizon: 1.0" and what it means: type, range, meaning.
std::string key_text(const KeyDescription& key) {
  std::string text = key.type == "choice" ? key.range : key.type + (key.range.empty() ? "" : " " + key.range);
  text += " — " + key.meaning;
  return "    " + key.key + ": " + key.fallback + "\n        " + wrapped(text, width - 8, 8) + "\n";
}

std::string keys_text(const std::string& heading, const std::vector<KeyDescription>& keys) {
  std::string text = "  " + heading + ", with defaults\n";
  for (const KeyDescription& key : keys) text += key_text(key);
  return text;
}

/// `trigger: {name: adaptive}` or `topology: {graph: {name: ring}}`
std::string in_yaml(const std::string& section, std::string_view name) {
  const std::size_t dot = section.find('.');
  const std::string choice = "{name: " + std::string(name) + "}";
  if (dot == std::string::npos) return section + ": " + choice;
  return section.substr(0, dot) + ": {" + section.substr(dot + 1) + ": " + choice + "}";
}

std::string text_of(const CatalogueKind& kind, const CatalogueEntry& entry) {
  const CatalogueEntry::Keys keys = entry.keys();
  return std::string(entry.name) + " (" + kind.name + ")\n" + field("summary", entry.summary) +
         field("equation", entry.equation) + field("cost", entry.cost) + field("citation", entry.citation) +
         field("in YAML", in_yaml(kind.section, entry.name)) +
         (keys.own.empty() ? "  no keys of its own\n" : keys_text("keys of `" + kind.section + "`", keys.own)) +
         (keys.other.empty() ? "" : keys_text("keys of other sections that it uses", keys.other));
}

std::string text_of(const CatalogueSection& section) {
  return section.name + " (section)\n" + field("summary", section.summary) +
         keys_text("keys of `" + section.name + "`", section.keys);
}

[[noreturn]] void unknown(const std::string& name, const Catalogue& catalogue) {
  std::vector<std::string> names;
  for (const CatalogueSection& section : catalogue.sections) names.push_back(section.name);
  for (const CatalogueKind& kind : catalogue.kinds) {
    for (const CatalogueEntry& entry : kind.entries) names.emplace_back(entry.name);
  }
  const std::string near = nearest(name, names);
  throw ConfigError("nothing is called '" + name + "'" +
                    (near.empty() ? "; `" + catalogue.command + " list` shows all names" + catalogue.remark()
                                  : ", did you mean '" + near + "'?"));
}

/// As a cell of a table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string table_row(const CatalogueEntry& entry) {
  return "| `" + std::string(entry.name) + "` | " + cell(entry.equation.empty() ? entry.summary : entry.equation) +
         " | " + cell(entry.cost) + " | " + cell(entry.citation) + " |\n";
}

}  // namespace

std::string markdown_text(const Catalogue& catalogue, const std::vector<std::string>& kinds) {
  std::string text;
  for (const std::string& name : kinds) {
    const CatalogueKind& kind = find_kind(catalogue, name);
    text += (text.empty() ? "| " : "\n| ") + kind.name + " | what it does | cost | source |\n|---|---|---|---|\n";
    for (const CatalogueEntry& entry : kind.entries) text += table_row(entry);
  }
  return text;
}

std::string describe_text(const Catalogue& catalogue, const std::vector<std::string>& names) {
  std::string text;
  const auto append = [&text](const std::string& part) { text += (text.empty() ? "" : "\n") + part; };
  for (const std::string& name : names) {
    bool found = false;
    for (const CatalogueKind& kind : catalogue.kinds)
      for (const CatalogueEntry& entry : kind.entries)
        if (entry.name == name) append(text_of(kind, entry)), found = true;
    for (const CatalogueSection& section : catalogue.sections)
      if (section.name == name) append(text_of(section)), found = true;
    if (!found) unknown(name, catalogue);
  }
  return text;
}

}  // namespace hearsay
