// A network file, as `hearsay probe` writes it: an Error, or a network that can be written and reads back.
#include "runtime/exchange/cost/network.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {

std::vector<std::string> seeds() {
  return {
      "# probed\nranks: 4\nhosts: 2\ninside: {alpha_s: 1e-06, beta_s_per_word: 1e-9}\n"
      "between: {alpha_s: 0.0001, beta_s_per_word: 3.2e-08}\n"
      "loads:\n  bytes_65536: {crossing: 1.5, shifting: 2}\nmemory_s_per_byte: 1e-10\nread_s_per_byte: 1e-10\n"
      "selection_s_per_value: 1e-09\nkept_s_per_entry: 1e-09\nmerge_s_per_entry: 1e-09\nlinks:\n"
      "  rank_1: {same_host: true, model: {alpha_s: 1e-06, beta_s_per_word: 1e-09}}\n"};
}

std::vector<std::string> words() {
  return {"ranks: 1000000\n",
          "hosts: 0",
          "alpha_s",
          "beta_s_per_word",
          "rank_2: ",
          "same_host: ",
          "{",
          "}",
          ": ",
          ",",
          "\n  ",
          "1e-300",
          "-1",
          ".nan",
          ".inf",
          "bytes_1048576: "};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file, again;
  file.fill({data, size});
  std::string written;
  try {
    const Network network = read_network(file.path());
    fuzz::require(network.ranks >= 2 && network.hosts >= 1, "ranks and hosts in range");
    written = network_yaml(network, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  again.fill(fuzz::bytes_of(written));
  fuzz::require(network_yaml(read_network(again.path()), "fuzz") == written, "what is written reads back equal");
  return 0;
}
