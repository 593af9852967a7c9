// Every exchange that there is, in every schedule, trains the papers' two networks, a few iterations on two ranks, and
// reports them.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "apps/shared/chosen_run.hpp"
#include "base/error.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/training/session.hpp"
#include "tests/support/mpi_environment.hpp"

namespace exchanges_test {
namespace {

using namespace hearsay;
using namespace hearsay::test;

namespace fs = std::filesystem;

/// A folder of this process alone, for CIFAR-10 and for runs: rank 0's. It goes with the object.
class Folder {
 public:
  Folder() {
    mpi::Communicator world;
    std::string name(32, ' ');
    if (mpi_environment().rank() == 0) {
      std::string pattern = (fs::temp_directory_path() / "hearsay-exchanges-XXXXXX").string();
      REQUIRE(mkdtemp(pattern.data()) != nullptr);
      name = fs::path(pattern).filename().string();
      write_black_photographs(fs::path(pattern) / "cifar10");
    }
    name.resize(32, ' ');
    world.broadcast(std::as_writable_bytes(std::span(name)), 0);
    path_ = fs::temp_directory_path() / name.substr(0, name.find(' '));
  }
  ~Folder() {
    std::error_code ignored;
    if (mpi_environment().rank() == 0) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  /// All are of the first class: what is learned is not the question here.
  static void write_black_photographs(const fs::path& folder) {
    fs::create_directories(folder);
    for (const char* file : {"data_batch_1.bin", "test_batch.bin"}) {
      std::ofstream(folder / file).put('\0');
      fs::resize_file(folder / file, 10000 * (1 + 3 * 32 * 32));
    }
  }
  fs::path path_;
};

/// Sections of the papers' two networks with eight batches of data.
std::vector<std::string> networks(const Folder& folder) {
  return {
      "model: {name: mnist_cnn}\n"
      "data: {name: synthetic_digits, train_size: 32, test_size: 8, batch_size: 8}\n",
      "model: {name: resnet20}\n"
      "data: {name: cifar10, batches: [1], train_limit: 32, test_limit: 8, batch_size: 8, path: " +
          (folder.path() / "cifar10").string() + "}\n"};
}

/// The exchange's section by itself and, where it takes that, asynchronous; in rounds of one iteration, for there are
/// four.
std::vector<std::string> sections_of(const ExchangeEntry& entry) {
  const auto takes = [](const std::string& section) {
    try {
      Config root = Config::from_text(section);
      static_cast<void>(plan_exchange(root));
      root.document().throw_if_invalid();
      return true;
    } catch (const ConfigError&) {
      return false;
    }
  };
  std::string keys = "exchange: {name: " + std::string(entry.name);
  if (takes(keys + ", local_steps: 1}\n")) keys += ", local_steps: 1";
  std::vector<std::string> sections{keys + "}\n"};
  if (const std::string section = keys + ", schedule: asynchronous}\n"; takes(section)) sections.push_back(section);
  return sections;
}

/// Σ of the column `bytes_sent` of communication.csv.
double bytes_by_edge(const fs::path& run) {
  std::ifstream file(run / "communication.csv");
  std::string line, cell;
  std::getline(file, line);
  int column = -1, columns = 0;
  for (std::istringstream names(line); std::getline(names, cell, ','); ++columns)
    if (cell == "bytes_sent") column = columns;
  double sum = 0.0;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    for (int c = 0; std::getline(cells, cell, ','); ++c)
      if (c == column) sum += std::stod(cell);
  }
  return sum;
}

TEST_CASE("every exchange, in every schedule, trains the papers' two networks and reports that") {
  const Folder folder;
  int runs = 0;
  for (const std::string& network : networks(folder))
    for (const ExchangeEntry& entry : exchanges())
      for (const std::string& exchange : sections_of(entry)) {
        CAPTURE(network);
        CAPTURE(exchange);
        const fs::path directory = folder.path() / std::to_string(runs++);
        Config config = Config::from_text(network + exchange + "train: {epochs: 2}\n");
        config.document().override_with("report.directory=" + directory.string());
        const ChosenRun run(std::move(config));
        const Summary summary = train(mpi_environment(), run.plan(), {});
        CHECK(summary.status == "finished");
        if (mpi_environment().rank() > 0) continue;
        CHECK(summary.iterations >= 4);
        CHECK(summary.iterations < 20);  // asynchronous: others may begin more than were asked for
        const Summary reported = read_summary(directory);
        CHECK(reported.status == "finished");
        CHECK(reported.iterations == summary.iterations);
        CHECK(bytes_by_edge(directory) > 0.0);
        CHECK(bytes_by_edge(directory) <= static_cast<double>(summary.totals.bytes()));
      }
  CHECK(runs > 2 * static_cast<int>(exchanges().size()));
}

}  // namespace
}  // namespace exchanges_test
