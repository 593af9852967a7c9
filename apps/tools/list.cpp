// list [KIND]
#include <algorithm>

#include "apps/shared/text.hpp"
#include "apps/tools/tools.hpp"

namespace hearsay {
namespace {

std::string list_of(const CatalogueKind& kind) {
  std::size_t width = 0;
  for (const CatalogueEntry& entry : kind.entries) width = std::max(width, screen_width(entry.name));
  std::string text = kind.name + " (" + kind.section + ".name)\n";
  for (const CatalogueEntry& entry : kind.entries)
    text += "  " + pad_right(entry.name, width) + "  " + std::string(entry.summary) + "\n";
  return text;
}

/// "train (data, optimizer, report)"
std::string names_of(const std::vector<CatalogueSection>& sections) {
  std::string others;
  for (std::size_t i = 1; i < sections.size(); ++i) others += (i == 1 ? "" : ", ") + sections[i].name;
  return sections.front().name + "`" + (others.empty() ? "" : " (" + others + ")");
}

}  // namespace

std::string list_text(const Catalogue& catalogue, const std::optional<std::string>& wanted) {
  if (wanted) return list_of(find_kind(catalogue, *wanted));
  std::string text;
  for (const CatalogueKind& kind : catalogue.kinds) text += list_of(kind) + "\n";
  return text + "`" + catalogue.command + " describe NAME` shows equation, keys, cost and citation; `" +
         catalogue.command + " describe " + names_of(catalogue.sections) + " the keys that all runs have" +
         catalogue.remark() + ".\n";
}

}  // namespace hearsay
