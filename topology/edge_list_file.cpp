// The text file that describes a graph, and optionally its weights, edge by edge.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text/foreign_text.hpp"
#include "topology/graph_tools.hpp"

namespace hearsay {
namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 20;  // of a file: ten million edges

template <class Number>
Number parse(const std::string& word, const std::string& place, const char* expected) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size())
    throw DataError(place + ": expected " + expected + ", got '" + word + "'");
  return number;
}

int parse_vertex(const std::string& word, const std::string& place) {
  const int vertex = parse<int>(word, place, "a vertex number (0, 1, …)");
  if (vertex < 0) throw DataError(place + ": expected a vertex number (0, 1, …), got '" + word + "'");
  return vertex;
}

std::vector<std::string> words_of(std::string line) {
  line.erase(std::min(line.find('#'), line.size()));
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

EdgeLine parse_line(const std::vector<std::string>& words, const std::string& place, int line) {
  if (words.size() != 2 && words.size() != 3)
    throw DataError(place + ": expected `i j` or `i j w`, got " + std::to_string(words.size()) + " columns");
  EdgeLine edge{parse_vertex(words[0], place), parse_vertex(words[1], place), std::nullopt, line};
  if (words.size() == 3) edge.weight = parse<double>(words[2], place, "a weight");
  if (edge.weight && !std::isfinite(*edge.weight))
    throw DataError(place + ": expected a finite weight, got '" + words[2] + "'");
  if (edge.i == edge.j && !edge.weight)
    throw DataError(place + ": self-loop at vertex " + words[0] + "; every rank keeps its own model without one");
  return edge;
}

/// Every vertex is a rank, and rank 0 is one of them: without it the graph has a rank without an edge.
void require_ranks(const std::vector<EdgeLine>& edges, const std::string& file, int ranks) {
  if (edges.empty()) return;
  int lowest = std::min(edges.front().i, edges.front().j), highest = lowest;
  for (const EdgeLine& edge : edges) {
    lowest = std::min({lowest, edge.i, edge.j});
    highest = std::max({highest, edge.i, edge.j});
  }
  if (lowest > 0)
    throw ConfigError(file + ": vertices " + std::to_string(lowest) + " to " + std::to_string(highest) +
                      ", and none is 0: are they numbered from 1? Ranks are numbered from 0, so " +
                      std::to_string(ranks) + " of them are 0 to " + std::to_string(ranks - 1));
  for (const EdgeLine& edge : edges) {
    const int vertex = std::max(edge.i, edge.j);
    if (vertex >= ranks)
      throw ConfigError(file + ":" + std::to_string(edge.line) + ": vertex " + std::to_string(vertex) + " with " +
                        std::to_string(ranks) + " ranks, numbered 0 to " + std::to_string(ranks - 1) +
                        "; run on at least " + std::to_string(std::int64_t{highest} + 1) + " ranks");
  }
}

}  // namespace

std::vector<EdgeLine> read_edge_list(const std::filesystem::path& file, int ranks, bool directed) {
  std::istringstream stream(plain_file_text(file, most_bytes, "name an existing edge-list file"));
  std::vector<EdgeLine> edges;
  std::map<std::pair<int, int>, int> line_of;
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    const std::vector<std::string> words = words_of(text);
    if (words.empty()) continue;
    const std::string place = file.string() + ":" + std::to_string(line);
    const EdgeLine edge = parse_line(words, place, line);
    const std::pair<int, int> ends =
        directed ? std::pair(edge.i, edge.j) : std::pair<int, int>(std::minmax(edge.i, edge.j));
    const auto [earlier, is_new] = line_of.try_emplace(ends, line);
    if (!is_new)
      throw DataError(place + ": duplicate edge " + words[0] + " " + words[1] + ", first given in line " +
                      std::to_string(earlier->second) + "; name each edge once" +
                      (directed ? "" : ", in one direction"));
    if (!edges.empty() && edges.front().weight.has_value() != edge.weight.has_value())
      throw DataError(place + ": give a weight on every line or on none; line " + std::to_string(edges.front().line) +
                      (edge.weight ? " has none" : " has one"));
    edges.push_back(edge);
  }
  require_ranks(edges, file.string(), ranks);
  return edges;
}

}  // namespace hearsay
