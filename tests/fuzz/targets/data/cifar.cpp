// A file of CIFAR-10, of up to three records instead of 10,000: an Error, or images whose labels are classes.
//   the input: how many records the reader expects; how many zeros the file begins with; its other bytes; whether the
//   file is cut or filled up with zeros to the length that is right
#include "apps/datasets/cifar10.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

constexpr std::size_t record = 3073;

}  // namespace

std::vector<std::string> seeds() {
  return {raw(std::uint8_t{3}) + raw(std::uint8_t{1}) + raw(std::uint16_t{0}) + "\1\1\2",
          raw(std::uint8_t{2}) + raw(std::uint8_t{1}) + raw(std::uint16_t{3073}) + "\1\11"};
}

std::vector<std::string> words() { return {raw(std::uint16_t{2 * 3073}), "\1\12", "\1\xff"}; }

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file;
  fuzz::Reader reader({data, size});
  const std::size_t records = reader.take<std::uint8_t>() % 4;
  const bool whole = reader.take<std::uint8_t>() % 4 != 0;
  const std::size_t at = reader.take<std::uint16_t>() % (4 * fuzz::record);
  const std::size_t length = whole ? records * fuzz::record : at + reader.rest().size();
  file.fill({}, length);
  if (at < length) file.put(reader.rest().first(std::min(reader.rest().size(), length - at)), at);
  ImageSet images;
  try {
    append_cifar10(file.path(), records, images);
  } catch (const Error&) {
    return 0;
  }
  fuzz::require(images.labels.size() == records && images.pixels.size() == records * (fuzz::record - 1), "every image");
  for (const auto label : images.labels) fuzz::require(label < 10, "a label is a class");
  return 0;
}
