// hearsay describe NAME…
#include <cstdio>
#include <utility>

#include "apps/hearsay/catalogue.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/shared/text.hpp"
#include "base/config/nearest.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

constexpr std::size_t width = 100;
constexpr std::size_t label_width = 12;

void print_field(std::string_view label, std::string_view text) {
  if (text.empty()) return;
  std::printf("  %s%s\n", pad_right(label, label_width).c_str(),
              wrapped(text, width - 2 - label_width, 2 + label_width).c_str());
}

/// "horizon: 1.0" and what it means: type, range, meaning.
void print_key(const KeyDescription& key) {
  std::printf("    %s: %s\n", key.key.c_str(), key.fallback.c_str());
  std::string text = key.type == "choice" ? key.range : key.type + (key.range.empty() ? "" : " " + key.range);
  text += " — " + key.meaning;
  std::printf("        %s\n", wrapped(text, width - 8, 8).c_str());
}

/// `trigger: {name: adaptive}` or `topology: {graph: {name: ring}}`
std::string in_yaml(const std::string& section, std::string_view name) {
  const std::size_t dot = section.find('.');
  const std::string choice = "{name: " + std::string(name) + "}";
  if (dot == std::string::npos) return section + ": " + choice;
  return section.substr(0, dot) + ": {" + section.substr(dot + 1) + ": " + choice + "}";
}

void print(const CatalogueKind& kind, const CatalogueEntry& entry) {
  std::printf("%s (%s)\n", std::string(entry.name).c_str(), kind.name.c_str());
  print_field("summary", entry.summary);
  print_field("equation", entry.equation);
  print_field("cost", entry.cost);
  print_field("citation", entry.citation);
  print_field("in YAML", in_yaml(kind.section, entry.name));
  const CatalogueEntry::Keys keys = entry.keys();
  std::printf(keys.own.empty() ? "  no keys of its own\n" : "  keys of `%s`, with defaults\n", kind.section.c_str());
  for (const KeyDescription& key : keys.own) print_key(key);
  if (!keys.other.empty()) std::printf("  keys of other sections that it uses, with defaults\n");
  for (const KeyDescription& key : keys.other) print_key(key);
}

void print(const CatalogueSection& section) {
  std::printf("%s (section)\n", section.name.c_str());
  print_field("summary", section.summary);
  std::printf("  keys of `%s`, with defaults\n", section.name.c_str());
  for (const KeyDescription& key : section.keys) print_key(key);
}

[[noreturn]] void unknown(const std::string& name, const std::vector<CatalogueKind>& kinds,
                          const std::vector<CatalogueSection>& sections) {
  std::vector<std::string> names;
  for (const CatalogueSection& section : sections) names.push_back(section.name);
  for (const CatalogueKind& kind : kinds) {
    for (const CatalogueEntry& entry : kind.entries) names.emplace_back(entry.name);
  }
  const std::string near = nearest(name, names);
  throw ConfigError("nothing is called '" + name + "'" +
                    (near.empty() ? "; `hearsay list` shows all names" : ", did you mean '" + near + "'?"));
}

}  // namespace

int describe_command(const std::vector<std::string>& names) {
  const auto kinds = catalogue();
  const auto sections = catalogue_sections();
  bool first = true;
  for (const std::string& name : names) {
    bool found = false;
    for (const CatalogueKind& kind : kinds) {
      for (const CatalogueEntry& entry : kind.entries) {
        if (entry.name != name) continue;
        if (!std::exchange(first, false)) std::printf("\n");
        print(kind, entry);
        found = true;
      }
    }
    for (const CatalogueSection& section : sections) {
      if (section.name != name) continue;
      if (!std::exchange(first, false)) std::printf("\n");
      print(section);
      found = true;
    }
    if (!found) unknown(name, kinds, sections);
  }
  return 0;
}

}  // namespace hearsay
