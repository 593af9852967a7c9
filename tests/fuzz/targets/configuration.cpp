// A configuration and what is set on top of it: refused with a ConfigError, or read; and what is read can be written,
// and reads back equal.
//   the input: the document, then, after a byte 0xff each, up to four assignments
#include "base/config/config.hpp"
#include "base/error.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/report/report.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "topology/topology.hpp"

namespace hearsay::fuzz {
namespace {

constexpr char separator = '\xff';

/// What `hearsay train` reads without LibTorch; the complete configuration.
std::string read(Config root) {
  read_seed(root);
  const auto exchange = plan_exchange(root);
  const auto topology = plan_topology(root, *exchange);
  Config report = root.section("report");
  read_report_options(report, "fuzz");
  Config data = root.section("data");
  data.path("path", "", "");
  data.integers("batches", {1, 2}, Range::between(1, 5), "");
  data.flag("shuffle", true, "");
  root.document().throw_if_invalid();
  return root.document().dump();
}

}  // namespace

std::vector<std::string> seeds() {
  return {"seed: 7\n",
          ",",
          "a: &a [1, 2]\nb: *a\n",
          "- a\n- b: c\n",
          "{a: {b: [1, {c: d}]}}",
          "exchange: {name: eventgrad, schedule: lockstep, mixing: {name: arrival}}\n"
          "topology: {graph: {name: ring}, weights: {name: uniform}}\n"
          "trigger: {name: adaptive, horizon: 1.0, history: 2, warmup_iterations: 30}\n"
          "sparsify: {selector: {name: topk, density: 0.1}, codec: {name: delta}, quantiser: {name: int8}}\n",
          "exchange:\n  name: gtopk\n  merge: butterfly\nsparsify:\n  selector:\n    name: topk\n    density: 1e-2\n",
          "seed: 1\n\xffseed=2\xffreport.directory=\"x y\"",
          "a: |\n  text\n  more\nb: >-\n  folded\n",
          "%YAML 1.2\n---\n? a\n: !!str 1\n...\n",
          "report: {directory: 'it''s', overwrite: true} # why\n"};
}

std::vector<std::string> words() {
  return {",",
          ": ",
          "- ",
          "? ",
          "[",
          "]",
          "{",
          "}",
          "&a ",
          "*a",
          "!t ",
          "!!str ",
          "|\n",
          ">\n",
          "---\n",
          "...\n",
          "\n  ",
          "%YAML 1.2\n",
          "'",
          "\"",
          "\\x41",
          "#",
          "<<: ",
          ".inf",
          ".nan",
          "1e400",
          "0x10",
          "~",
          "null",
          "true",
          "name: ",
          "exchange: ",
          "topology: ",
          "trigger: ",
          "sparsify: ",
          "report: ",
          "seed: ",
          "\xff",
          "=",
          "codec.name=bitmap",
          "trigger.name=etg",
          "trigger.name=random",
          "path: /dev/zero"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> assignments;
  for (std::size_t at = 0; assignments.size() < 4 && (at = text.rfind(fuzz::separator)) != std::string::npos;) {
    assignments.push_back(text.substr(at + 1));
    text.resize(at);
  }
  std::string complete;
  try {
    Config config = Config::from_text(text, "fuzz");
    for (const std::string& assignment : assignments) config.document().override_with(assignment);
    config.document().rehearse([](Config root) { fuzz::read(std::move(root)); });
    complete = fuzz::read(config);
  } catch (const ConfigError&) {
    return 0;
  }
  fuzz::require(fuzz::read(Config::from_text(complete, "dump")) == complete, "a dump reads back equal");
  return 0;
}
