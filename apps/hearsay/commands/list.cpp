// hearsay list [KIND]
#include <algorithm>
#include <cstdio>

#include "apps/hearsay/catalogue.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/shared/text.hpp"

namespace hearsay {
namespace {

void print(const CatalogueKind& kind) {
  std::size_t width = 0;
  for (const CatalogueEntry& entry : kind.entries) width = std::max(width, screen_width(entry.name));
  std::printf("%s (%s.name)\n", kind.name.c_str(), kind.section.c_str());
  for (const CatalogueEntry& entry : kind.entries) {
    std::printf("  %s  %s\n", pad_right(entry.name, width).c_str(), std::string(entry.summary).c_str());
  }
}

}  // namespace

int list_command(const std::optional<std::string>& wanted) {
  const auto kinds = catalogue();
  if (wanted) {
    print(find_kind(kinds, *wanted));
    return 0;
  }
  for (const CatalogueKind& kind : kinds) {
    print(kind);
    std::printf("\n");
  }
  std::printf(
      "`hearsay describe NAME` shows equation, keys, cost and citation; `hearsay describe train` (data, "
      "optimizer, report) the keys that all runs have.\n");
  return 0;
}

}  // namespace hearsay
