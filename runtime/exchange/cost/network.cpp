#include "runtime/exchange/cost/network.hpp"

#include "base/config/config.hpp"
#include "base/text/number.hpp"

namespace hearsay {
namespace {

constexpr std::string_view alpha_meaning = "seconds that a message takes, however short";
constexpr std::string_view beta_meaning = "seconds that 4 more bytes take";

std::string link_yaml(const AlphaBeta& model) {
  return "{alpha_s: " + number_text(model.alpha_s, 6) + ", beta_s_per_word: " + number_text(model.beta_s, 6) + "}";
}

AlphaBeta read_link(Config section) {
  section.require(section.has("alpha_s") && section.has("beta_s_per_word"), "alpha_s",
                  "a link has alpha_s and beta_s_per_word; `hearsay probe` writes both");
  return {.alpha_s = section.real("alpha_s", 0.0, Range::at_least(0.0), alpha_meaning),
          .beta_s = section.real("beta_s_per_word", 0.0, Range::at_least(0.0), beta_meaning)};
}

std::string load_name(double bytes) { return "bytes_" + std::to_string(static_cast<std::size_t>(bytes)); }

std::string loads_yaml(const std::vector<Load>& loads) {
  if (loads.empty()) return "";
  std::string text = "loads:  # times as long as alone, where all ranks send at once\n";
  for (const Load& load : loads)
    text += "  " + load_name(load.bytes) + ": {crossing: " + number_text(load.crossing, 6) +
            ", shifting: " + number_text(load.shifting, 6) + "}\n";
  return text;
}

std::vector<Load> read_loads(Config section) {
  std::vector<Load> loads;
  for (const std::size_t bytes : loaded_bytes) {
    const auto length = static_cast<double>(bytes);
    if (!section.has(load_name(length))) continue;
    Config load = section.section(load_name(length));
    loads.push_back({.bytes = length,
                     .crossing = load.real("crossing", 1.0, Range::at_least(1.0), "pairs to each other"),
                     .shifting = load.real("shifting", 1.0, Range::at_least(1.0), "every rank to the next")});
  }
  return loads;
}

std::string link_name(int rank) { return "rank_" + std::to_string(rank); }

}  // namespace

std::string network_yaml(const Network& network, const std::string& origin) {
  std::string text = "# " + origin + "\nranks: " + std::to_string(network.ranks) +
                     "\nhosts: " + std::to_string(network.hosts) + "\ninside: " + link_yaml(network.inside) +
                     "\nbetween: " + link_yaml(network.between) + "\n" + loads_yaml(network.loads) +
                     "memory_s_per_byte: " + number_text(network.memory_s, 6) +
                     "\nread_s_per_byte: " + number_text(network.read_s, 6) +
                     "\nselection_s_per_value: " + number_text(network.selection_s, 6) +
                     "\nkept_s_per_entry: " + number_text(network.kept_s, 6) +
                     "\nmerge_s_per_entry: " + number_text(network.merge_s, 6) + "\nlinks:  # of rank 0\n";
  for (const Link& link : network.links) {
    text += "  " + link_name(link.rank) + ": {same_host: " + (link.same_host ? "true" : "false") +
            ", model: " + link_yaml(link.model) + "}\n";
  }
  return text;
}

Network read_network(const std::filesystem::path& file) {
  Config root = Config::from_file(file);
  Network network;
  network.ranks = static_cast<int>(root.integer("ranks", 2, Range::between(2, 1e6), "ranks that took part"));
  network.hosts = static_cast<int>(root.integer("hosts", 1, Range::between(1, 1e6), "hosts that they ran on"));
  network.inside = read_link(root.section("inside"));
  network.between = read_link(root.section("between"));
  network.loads = read_loads(root.section("loads"));
  network.memory_s = root.real("memory_s_per_byte", 0.0, Range::at_least(0.0), "of r += g, one rank");
  network.read_s = root.real("read_s_per_byte", 0.0, Range::at_least(0.0), "of mstopk's passes");
  network.selection_s = root.real("selection_s_per_value", 0.0, Range::at_least(0.0), "r += g, top-k, clearing");
  network.kept_s = root.real("kept_s_per_entry", 0.0, Range::at_least(0.0), "of an entry that is selected");
  network.merge_s = root.real("merge_s_per_entry", 0.0, Range::at_least(0.0), "of two sparse lists");
  Config links = root.section("links");
  for (int rank = 1; rank < network.ranks; ++rank) {
    if (!links.has(link_name(rank))) continue;
    Config link = links.section(link_name(rank));
    network.links.push_back({.rank = rank,
                             .same_host = link.flag("same_host", false, "on the host of rank 0"),
                             .model = read_link(link.section("model"))});
  }
  root.document().throw_if_invalid();
  return network;
}

}  // namespace hearsay
