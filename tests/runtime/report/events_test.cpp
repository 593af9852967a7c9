// TensorBoard's event files, read back by the format's own rules.
#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "base/error.hpp"
#include "runtime/report/event_file.hpp"
#include "runtime/report/events/encoding.hpp"
#include "runtime/report/identity/run_id.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

#if defined(HEARSAY_EVENTS)
#include <event.pb.h>
#endif

namespace events_test {

using namespace hearsay;
using hearsay::test::TemporaryFolder;

namespace {

/// CRC-32C, bit by bit, as RFC 3720 defines it: x^32 is the polynomial 1EDC6F41, bits reflected.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t x = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) x = x << 8 | static_cast<unsigned char>(bytes[i]);
  return x;
}

void require_crc(std::string_view bytes, std::string_view masked) {
  const auto rotated = static_cast<std::uint32_t>(little_endian(masked)) - 0xA282EAD8;
  if (std::rotl(rotated, 15) != crc32c(bytes)) throw std::runtime_error("wrong checksum");
}

/// The data of every record of a file. Throws std::runtime_error where a record is cut off or damaged.
std::vector<std::string> records_of(std::string_view file) {
  const auto take = [&file](std::uint64_t n) {
    if (n > file.size()) throw std::runtime_error("cut off");
    const std::string_view head = file.substr(0, n);
    file.remove_prefix(n);
    return head;
  };
  std::vector<std::string> records;
  while (!file.empty()) {
    const std::string_view length = take(8);
    require_crc(length, take(4));
    const std::string_view data = take(little_endian(length));
    require_crc(data, take(4));
    records.emplace_back(data);
  }
  return records;
}

}  // namespace

TEST_CASE("the checksum is CRC-32C, masked") {
  CHECK(crc32c("123456789") == 0xE3069283);                  // the check value of the CRC catalogue
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);        // RFC 3720, B.4
  for (const std::string text : {"", "123456789", "event"})  // masked as in tensorflow/core/lib/hash/crc32c.h
    CHECK(masked_crc32c(text) == (crc32c(text) >> 15 | crc32c(text) << 17) + 0xA282EAD8);
}

TEST_CASE("records are framed so that every damaged byte is seen") {
  const std::string file = framed("first") + framed("") + framed(std::string(300, 'x'));
  const auto records = records_of(file);
  REQUIRE(records.size() == 3);
  CHECK(records[0] == "first");
  CHECK(records[1].empty());
  CHECK(records[2] == std::string(300, 'x'));
  for (std::size_t at = 0; at < file.size(); ++at) {
    CAPTURE(at);
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CHECK_THROWS_AS(records_of(damaged), std::runtime_error);
  }
}

#if defined(HEARSAY_EVENTS)
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::filesystem::path only_file(const std::filesystem::path& directory) {
  const auto files = find_event_files(directory);
  REQUIRE(files.size() == 1);
  return files.front();
}

std::vector<events::Event> events_of(const std::filesystem::path& directory) {
  std::vector<events::Event> found;
  for (const std::string& record : records_of(test::contents(only_file(directory)))) {
    found.emplace_back();
    REQUIRE(found.back().ParseFromString(record));
  }
  return found;
}

std::map<std::string, float> scalars_of(const events::Event& event) {
  std::map<std::string, float> scalars;
  for (const events::Summary::Value& value : event.summary().value()) {
    CHECK(value.value_case() == events::Summary::Value::kSimpleValue);
    CHECK(scalars.emplace(value.tag(), value.simple_value()).second);
  }
  return scalars;
}

IterationRecord example() {
  IterationRecord record{.iteration = 50, .epoch = 0.5, .time_s = 1.25, .loss = 2.5, .totals = {}, .staleness_max = 3};
  record.totals.messages = 30;
  record.totals.payload_bytes = 100;
  record.totals.control_bytes = 28;
  record.messages_possible = 120;
  record.learning_rate = 0.0625;
  record.shares = {{"lost_mass_fraction", 0.0}};
  return record;
}

}  // namespace

TEST_CASE("an event file is what was recorded, 0 included, with step and wall time") {
  const TemporaryFolder folder;
  const double before_s = now_s();
  {
    EventFile file(folder.path(), 3, "node7");
    file.start_clock();
    file.write(example());
    file.write(EvaluationRecord{.iteration = 60,
                                .epoch = 1.0,
                                .time_s = 2.0,
                                .loss_mean_model = 0.75,
                                .consensus_distance = 0.125,
                                .metrics = {{accuracy_metric(), 0.5}}});
    Layout layout;
    layout.append("fc.weight", {2, 3});
    layout.append("fc.bias", {2});
    file.write_segments(50, 1.25, layout, std::vector<double>{1.5, 0.25},
                        std::vector<double>{0.5, std::numeric_limits<double>::infinity()});
  }
  const double after_s = now_s();
  const auto events = events_of(folder.path());
  REQUIRE(events.size() == 4);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].step() == 50);
  CHECK(events[2].step() == 60);
  CHECK(events[1].wall_time() >= before_s + 1.25);
  CHECK(events[2].wall_time() <= after_s + 2.0);
  CHECK(events[2].wall_time() - events[1].wall_time() == doctest::Approx(0.75));
  CHECK(scalars_of(events[1]) == std::map<std::string, float>{{"training/loss", 2.5F},
                                                              {"training/learning_rate", 0.0625F},
                                                              {"training/epoch", 0.5F},
                                                              {"communication/messages_fraction", 0.25F},
                                                              {"communication/bytes_sent", 128.0F},
                                                              {"communication/staleness_max_iterations", 3.0F},
                                                              {"algorithm/lost_mass_fraction", 0.0F}});
  CHECK(scalars_of(events[2]) == std::map<std::string, float>{{"evaluation/accuracy_mean_model", 0.5F},
                                                              {"evaluation/loss_mean_model", 0.75F},
                                                              {"evaluation/consensus_distance", 0.125F}});
  CHECK(scalars_of(events[3]) == std::map<std::string, float>{{"norms/fc.weight", 1.5F},
                                                              {"norms/fc.bias", 0.25F},
                                                              {"thresholds/fc.weight", 0.5F}});
}

TEST_CASE("an event file lies where TensorBoard looks, a folder a rank; numbers that are not finite are left out") {
  const TemporaryFolder folder;
  IterationRecord record = example();
  record.loss = record.learning_rate = not_a_number;
  EventFile(folder.path(), 12, "node7").write(record);
  const std::filesystem::path file = only_file(folder.path());
  CHECK(file.parent_path() == folder / "tensorboard/rank0012");
  CHECK(file.filename().string().starts_with("events.out.tfevents."));
  CHECK(file.filename().string().ends_with(".node7"));
  const auto scalars = scalars_of(events_of(folder.path()).at(1));
  CHECK(!scalars.contains("training/loss"));
  CHECK(!scalars.contains("training/learning_rate"));
  CHECK(scalars.contains("training/epoch"));
}

TEST_CASE("a folder with event files is a run, and overwriting removes them and no file of others") {
  const TemporaryFolder folder;
  const std::string id = new_run_id();
  EventFile(folder.path(), 0, "a", id);
  EventFile(folder.path(), 1, "a", id);
  test::write(folder / "tensorboard/rank0001/notes.txt", "mine");
  test::write(folder / "tensorboard/other/events.out.tfevents.1.a", "mine");
  ReportOptions options;
  options.directory = folder.path();
  CHECK_THROWS_AS(RunFolder{options}, ConfigError);
  options.overwrite = true;
  CHECK_NOTHROW(RunFolder{options});
  CHECK(find_event_files(folder.path()).empty());
  CHECK(!std::filesystem::exists(folder / "tensorboard/rank0000"));
  CHECK(test::contents(folder / "tensorboard/rank0001/notes.txt") == "mine");
  CHECK(test::contents(folder / "tensorboard/other/events.out.tfevents.1.a") == "mine");
}

TEST_CASE("event files of somebody else's, behind a link, are neither found nor removed, nor are any written there") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "elsewhere/rank0000");
  test::write(folder / "elsewhere/rank0000/events.out.tfevents.1.a", "mine");
  std::filesystem::create_directories(folder / "run/tensorboard");
  std::filesystem::create_directory_symlink("../../elsewhere/rank0000", folder / "run/tensorboard/rank0000");
  CHECK(find_event_files(folder / "run").empty());
  CHECK_THROWS_WITH_AS(EventFile(folder / "run", 0, "a"), doctest::Contains("is a link"), DataError);
  std::filesystem::remove_all(folder / "run/tensorboard");
  std::filesystem::create_directory_symlink("../elsewhere", folder / "run/tensorboard");
  CHECK(find_event_files(folder / "run").empty());
  CHECK_THROWS_WITH_AS(EventFile(folder / "run", 1, "a"), doctest::Contains("is a link"), DataError);
  CHECK(!RunFolder({.directory = folder / "run", .overwrite = true}).id().empty());
  CHECK(test::contents(folder / "elsewhere/rank0000/events.out.tfevents.1.a") == "mine");
}

TEST_CASE("an event file that cannot be written is a DataError; without report.tensorboard there is none") {
  const TemporaryFolder folder;
  test::write(folder / "file", "");
  CHECK_THROWS_WITH_AS(EventFile(folder / "file", 0, "a"), doctest::Contains("file/tensorboard/rank0000"), DataError);
  CHECK(!open_event_file({.directory = folder.path()}, 0, "a"));
  CHECK(open_event_file({.directory = folder.path(), .tensorboard = true}, 0, "a"));
}
#else
TEST_CASE("without Protobuf report.tensorboard is a configuration error that says what to install") {
  Config report = Config::from_text("{tensorboard: true}");
  read_report_options(report, "x");
  CHECK_THROWS_WITH_AS(report.document().throw_if_invalid(), doctest::Contains("libprotobuf-dev"), ConfigError);
}
#endif

}  // namespace events_test
