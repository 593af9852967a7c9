// manifest.json and config.yaml: what is known at the start.
#include <chrono>
#include <ctime>

#include "runtime/report/files.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm fields{};
  gmtime_r(&now, &fields);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields)};
}

/// [[i, j, w_ij], …] with i < j; none where everybody may talk to everybody, which says it all.
Json edges_of(const Topology& topology) {
  Json edges = Json::array();
  if (topology.everybody) return edges;
  for (int i = 0; i < topology.ranks(); ++i) {
    const Neighbourhood row = topology.neighbourhood(i);
    for (std::size_t e = 0; e < row.neighbours.size(); ++e) {
      if (topology.directed() ? row.hears(e) : i < row.neighbours[e])
        edges.push_back({i, row.neighbours[e], row.weights[e]});
    }
  }
  return edges;
}

Json topology_json(const Topology& topology) {
  const Spectrum& spectrum = topology.spectrum();
  return {{"graph", topology.graph_name},
          {"weights", topology.weights_name},
          {"directed", topology.directed()},
          {"directed_edges", topology.directed_edges()},
          {"second_eigenvalue", json_number(spectrum.second)},
          {"smallest_eigenvalue", json_number(spectrum.smallest)},
          {"contraction", json_number(spectrum.contraction)},
          {"spectral_gap", json_number(spectrum.gap)},
          {"everybody", topology.everybody},
          {"edges", edges_of(topology)}};
}

Json segments_json(const Layout& layout) {
  Json segments = Json::array();
  for (const Segment& s : layout.segments()) {
    segments.push_back({{"name", s.name}, {"shape", s.shape}, {"offset", s.offset}, {"length", s.length}});
  }
  return segments;
}

}  // namespace

void write_manifest(const std::filesystem::path& directory, const Manifest& manifest, const Topology& topology,
                    const Layout& layout) {
  const Json json{{"schema_version", report_schema_version},
                  {"run_id", manifest.run_id},
                  {"command", manifest.command},
                  {"started_utc", utc_now()},
                  {"ranks", topology.ranks()},
                  {"hosts", manifest.hosts},
                  {"versions", manifest.versions},
                  {"seed", manifest.seed},
                  {"iterations", manifest.iterations},
                  {"resumed_at_iterations", manifest.resumed_at},
                  {"model", manifest.model},
                  {"dataset", manifest.dataset},
                  {"exchange", manifest.exchange},
                  {"parameters", layout.size()},
                  {"segments", segments_json(layout)},
                  {"topology", topology_json(topology)},
                  {"config_yaml", manifest.config_yaml}};
  // In this order: a config.yaml without a manifest is not a run's.
  write_file(directory / "manifest.json", json.dump(2) + "\n");
  const std::string run = manifest.run_id.empty() ? "" : "# run " + manifest.run_id + "\n";
  write_file(directory / "config.yaml", run + manifest.config_yaml);
}

}  // namespace hearsay
