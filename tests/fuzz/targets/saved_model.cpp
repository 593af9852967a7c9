// A saved model, some of whose bytes are others, or missing at the end: a DataError, or a model of its kind.
//   the input: where, how many bytes are left in all, and the bytes that stand there
// The seal finds it. A file made on purpose, with a right seal, may end LibTorch's parser of TorchScript: as with
// Python's, load only what you trust.
#include <torch/torch.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "runtime/training/model/model.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {
namespace {

struct NetImpl : torch::nn::Module {
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(2, 3));
  torch::Tensor seen = register_buffer("seen", torch::zeros({2}));
  torch::Tensor forward(const torch::Tensor& x) { return layer(x); }
};

Model model() { return Model(std::make_shared<NetImpl>()); }

const std::string& original() {
  static const std::string bytes = [] {
    std::string folder = "/tmp/hearsay-fuzz-XXXXXX";
    require(::mkdtemp(folder.data()) != nullptr, "a folder");
    model().save(folder + "/model.pt", "a run");
    std::ifstream in(folder + "/model.pt", std::ios::binary);
    std::string read{std::istreambuf_iterator<char>(in), {}};
    std::filesystem::remove_all(folder);
    return read;
  }();
  return bytes;
}

std::string seed(std::size_t at, std::size_t length) {
  return raw(static_cast<std::uint16_t>(at)) + raw(static_cast<std::uint16_t>(original().size())) +
         original().substr(at, length);
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  constexpr std::size_t step = 256, length = 32;
  for (std::size_t at = 0; at + length <= original().size(); at += step) all.push_back(seed(at, length));
  const std::size_t end = std::min<std::size_t>(original().size(), 512);
  all.push_back(seed(original().size() - end, end));  // the archive's table of contents
  return all;
}

std::vector<std::string> words() { return {"PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6", "\x80\2", "data.pkl", "code/"}; }

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file;
  static Model model = fuzz::model();
  std::string bytes = fuzz::original();
  fuzz::Reader reader({data, size});
  const std::size_t at = reader.take<std::uint16_t>() % bytes.size(), left = reader.take<std::uint16_t>();
  const auto others = reader.rest().first(std::min(reader.rest().size(), bytes.size() - at));
  std::ranges::copy(others, bytes.begin() + static_cast<std::ptrdiff_t>(at));
  bytes.resize(std::min(bytes.size(), left));
  file.fill(fuzz::bytes_of(bytes));
  try {
    model.load(file.path());
    fuzz::require(model.forward(torch::zeros({1, 2})).size(1) == 3, "three outputs");
  } catch (const DataError&) {
    model = fuzz::model();
  }
  return 0;
}
