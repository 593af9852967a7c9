// hearsay topology CONFIG -n P [--dot [FILE]] [--weights]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <numeric>

#include "apps/hearsay/commands.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

constexpr int most_rows = 8;  // unless W is asked for

/// "2 at every rank" or "1 to 7, mean 1.75"; of a directed graph whom a rank sends to.
std::string degree_text(const Topology& topology) {
  int least = topology.ranks(), most = 0;
  for (int i = 0; i < topology.ranks(); ++i) {
    const Neighbourhood row = topology.neighbourhood(i);
    const auto degree = static_cast<int>(topology.directed() ? row.sends() : row.neighbours.size());
    least = std::min(least, degree);
    most = std::max(most, degree);
  }
  if (least == most) return std::to_string(least) + " at every rank";
  const double mean = static_cast<double>(topology.directed_edges()) / topology.ranks();
  return std::to_string(least) + " to " + std::to_string(most) + ", mean " + significant(mean, 4);
}

std::string range_text(const std::vector<double>& values) {
  if (values.empty()) return "none";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*most - *least < 1e-12) return significant(*least, 6);
  return significant(*least, 6) + " to " + significant(*most, 6);
}

std::string weights_text(const Topology& topology) {
  std::vector<double> own, edges;
  for (int i = 0; i < topology.ranks(); ++i) {
    const Neighbourhood row = topology.neighbourhood(i);
    own.push_back(row.self_weight);
    std::ranges::copy_if(row.weights, std::back_inserter(edges), [](double weight) { return weight != 0.0; });
  }
  return "own " + range_text(own) + ", neighbours " + range_text(edges);
}

/// ‖x − x̄‖ shrinks by ρ per mixing, so tenfold in ln 10 / −ln ρ mixings.
std::string consensus_text(const Spectrum& spectrum) {
  constexpr double nothing = 1e-12;
  if (spectrum.contraction < nothing) return "differences vanish in one mixing";
  if (spectrum.gap < nothing) return "differences do not die out: the graph and its weights oscillate";
  const double mixings = std::log(10.0) / -std::log(spectrum.contraction);
  return "differences shrink tenfold in " + significant(mixings, 4) + " iterations (without gradients)";
}

/// A graph that changes has the ρ of a whole period.
std::string period_text(const Topology& topology) {
  const double gap = topology.spectrum().gap, contraction = topology.spectrum().contraction;
  const std::string period = counted(topology.period(), "iteration");
  constexpr double nothing = 1e-12;
  if (contraction < nothing) return "differences vanish in a period of " + period;
  const double iterations = static_cast<double>(topology.period()) * std::log(10.0) / -std::log(contraction);
  return "differences shrink by " + significant(gap, 6) + " in a period of " + period + ", tenfold in " +
         significant(iterations, 4) + " iterations (without gradients)";
}

/// "rank 3: sends to 4, 5, 7 in turn".
void print_phases(const Topology& topology) {
  std::printf("phases\n");
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(topology.ranks()); ++rank) {
    std::string text;
    for (const GraphPhase& phase : topology.phases) text += (text.empty() ? "" : ", ") + std::to_string(phase[rank]);
    std::printf("  rank %zu: sends to %s\n", rank, text.c_str());
  }
}

void print_rows(const Topology& topology) {
  std::printf("rows of W\n");
  for (int i = 0; i < topology.ranks(); ++i) {
    const Neighbourhood row = topology.neighbourhood(i);
    std::string text = "own " + significant(row.self_weight, 4);
    for (std::size_t e = 0; e < row.neighbours.size(); ++e) {
      if (row.hears(e)) text += ", " + std::to_string(row.neighbours[e]) + ": " + significant(row.weights[e], 4);
    }
    std::printf("  rank %d: %s\n", i, wrapped(text, 88, 10).c_str());
  }
}

void line(const char* label, const std::string& text) {
  std::printf("  %s%s\n", pad_right(label, 20).c_str(), text.c_str());
}

void print_changing(const Topology& topology) {
  const double weight = topology.phase_weight;
  line("period", counted(topology.period(), "iteration") + ", " + std::to_string(topology.edges_in_use()) +
                     " directed edges in each");
  line("weights", "own " + significant(1.0 - weight, 6) + ", the peer's " + significant(weight, 6));
  line("spectral gap", significant(topology.spectrum().gap, 6) + " of the product of a period");
  line("consensus rate", period_text(topology));
}

void print_topology(const Topology& topology) {
  const Spectrum& spectrum = topology.spectrum();
  std::printf("%s of %s, %s weights\n", topology.graph_name.c_str(), counted(topology.ranks(), "rank").c_str(),
              topology.weights_name.c_str());
  line("directed edges", std::to_string(topology.directed_edges()));
  if (topology.changes()) return print_changing(topology);
  line(topology.directed() ? "sends to" : "degree", degree_text(topology));
  line("weights", weights_text(topology));
  line(topology.directed() ? "magnitudes" : "eigenvalues of W",
       "second " + significant(spectrum.second, 6) + ", smallest " + significant(spectrum.smallest, 6));
  line("spectral gap", significant(spectrum.gap, 6));
  line("consensus rate", consensus_text(spectrum));
}

void print_weights(const Topology& topology, bool asked_for) {
  const char* const what = topology.changes() ? "phases" : "rows of W";
  if (topology.ranks() > most_rows && !asked_for)
    std::printf("  (--weights shows the %d %s)\n", topology.ranks(), what);
  else
    topology.changes() ? print_phases(topology) : print_rows(topology);
}

void write_dot(const Topology& topology, const std::string& file) {
  if (file == "-") {
    std::cout << to_dot(topology) << std::flush;
    return;
  }
  std::ofstream out(file);
  out << to_dot(topology);
  out.close();
  if (!out) throw DataError(file + ": cannot be written; give --dot a file in an existing, writable folder");
}

}  // namespace

int topology_command(const TopologyArguments& arguments) {
  require_ranks(arguments.ranks);
  const Topology topology = planned_topology(arguments.config, arguments.ranks);
  if (arguments.dot_file == "-") {
    write_dot(topology, "-");  // nothing else, so that it can be piped into `dot`
    return 0;
  }
  print_topology(topology);
  print_weights(topology, arguments.weights);
  if (arguments.dot_file) write_dot(topology, *arguments.dot_file);
  return 0;
}

}  // namespace hearsay
