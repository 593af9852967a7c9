// A checkpoint is a file: any bytes are loaded, or refused with a DataError that names the file. What has been loaded
// does not lead anybody astray: the rank goes on for an iteration.
//   the input: a byte that says which run it is of, and the state of rank 1 of 2
#include <memory>

#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/train.hpp"

namespace hearsay::fuzz {
namespace {

const std::string graph = "topology: {graph: {name: ring}, weights: {name: uniform}}\n";
const std::string some = "sparsify: {selector: {name: topk, density: 0.1}}\n";

struct Run {
  explicit Run(const std::string& yaml)
      : plan(yaml),
        layout(reference::small_layout()),
        topology(plan.topology(2)),
        initial(layout.size(), 1.0F),
        job{.topology = topology, .layout = layout, .initial = initial, .plan = plan.exchange()} {}

  test::Plan plan;
  Layout layout;
  Topology topology;
  std::vector<float> initial;
  test::LocalJob job;
};

const std::vector<std::unique_ptr<Run>>& runs() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Run>> made;
    for (const std::string& yaml :
         {graph +
              "exchange: {name: eventgrad, mixing: {name: difference, gamma: 0.3}, delay: 1}\ntrigger: {name: "
              "adaptive}\n" +
              some,
          graph + "exchange: {name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}\ntrigger: {name: "
                  "adaptive, silence_growth: 2}\n",
          graph + "exchange: {name: eventgrad, schedule: asynchronous, mixing: {name: arrival}}\n" + some,
          graph + std::string("exchange: {name: push_sum}\n")})
      made.push_back(std::make_unique<Run>(yaml));
    return made;
  }();
  return all;
}

std::string state_of(std::size_t which) {
  const Run& run = *runs()[which];
  test::LocalWorld world(run.job);
  const auto other = world.make_rank(0), rank = world.make_rank(1);
  RawBytes bytes;
  Archive archive = Archive::saving(bytes);
  rank->member.state(archive);
  return std::string(1, static_cast<char>(which)) +
         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (std::size_t which = 0; which < runs().size(); ++which) all.push_back(state_of(which));
  return all;
}

std::vector<std::string> words() {
  return {raw(std::uint64_t{1}), raw(std::uint64_t{1} << 40), raw(std::uint32_t{2}), raw(std::int64_t{-1})};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  fuzz::Reader reader({data, size});
  const fuzz::Run& run = *fuzz::runs()[reader.take<std::uint8_t>() % 4];
  test::LocalWorld world(run.job);
  const auto other = world.make_rank(0), rank = world.make_rank(1);
  try {
    Archive archive = Archive::loading(reader.rest_bytes(), "FILE");
    rank->member.state(archive);
    rank->member.start(1'000'000'000);
  } catch (const DataError& error) {
    fuzz::require(std::string(error.what()).find("FILE: ") == 0, "the file is named");
  } catch (const DivergenceError&) {
  } catch (const std::logic_error& error) {  // an iteration that was before
    fuzz::require(std::string(error.what()).find("after iteration") != std::string::npos, "an iteration in order");
  }
  return 0;
}
