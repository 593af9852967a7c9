#include "apps/datasets/file_reader.hpp"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "base/regular_file.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t first_guess = std::size_t{1} << 20;  // unpacked bytes; doubled as needed

Bytes read_raw(const fs::path& path, std::size_t most) {
  RegularFile file(path);
  Bytes bytes(std::min(file.size(), most));
  file.read(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

[[noreturn]] void bad_archive(const fs::path& file, std::string_view format, std::size_t offset, std::string_view why) {
  throw DataError(file.string() + ": " + std::string(format) + " data " + std::string(why) + " at byte " +
                  std::to_string(offset) + " of the file; fetch it again");
}

/// Room for more output after the first `used` bytes, up to most + 1. False where there is as much already.
bool grow(Bytes& out, std::size_t used, std::size_t most) {
  if (used > most) return false;
  if (used == out.size()) out.resize(std::min(most + 1, std::max(first_guess, 2 * out.size())));
  return true;
}

struct Inflater {
  z_stream stream{};
  Inflater() {
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&stream, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

Bytes unpack_gzip(const fs::path& file, const Bytes& in, std::size_t most) {
  if (in.size() > std::numeric_limits<uInt>::max()) throw DataError(file.string() + ": larger than 4 GiB");
  Inflater inflater;
  z_stream& z = inflater.stream;
  z.next_in = const_cast<Bytef*>(in.data());  // zlib does not write to its input
  z.avail_in = static_cast<uInt>(in.size());
  Bytes out;
  std::size_t used = 0;
  while (grow(out, used, most)) {
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size() - used, std::numeric_limits<uInt>::max()));
    z.next_out = out.data() + used;
    z.avail_out = room;
    const int status = inflate(&z, Z_NO_FLUSH);
    used += room - z.avail_out;
    const std::size_t offset = in.size() - z.avail_in;
    if (status == Z_STREAM_END && z.avail_in == 0) break;
    if (status == Z_STREAM_END) {
      if (inflateReset(&z) != Z_OK) bad_archive(file, "gzip", offset, "is corrupt");
    } else if (status == Z_DATA_ERROR) {
      bad_archive(file, "gzip", offset, "is corrupt (" + std::string(z.msg != nullptr ? z.msg : "bad data") + ")");
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (z.avail_in == 0 && z.avail_out != 0) {
      bad_archive(file, "gzip", offset, "is truncated: it ends");
    }
  }
  out.resize(used);
  return out;
}

struct LzmaDecoder {
  lzma_stream stream = LZMA_STREAM_INIT;
  LzmaDecoder() {
    constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();
    if (lzma_stream_decoder(&stream, no_limit, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  }
  LzmaDecoder(const LzmaDecoder&) = delete;
  LzmaDecoder& operator=(const LzmaDecoder&) = delete;
  ~LzmaDecoder() { lzma_end(&stream); }
};

Bytes unpack_xz(const fs::path& file, const Bytes& in, std::size_t most) {
  LzmaDecoder decoder;
  lzma_stream& z = decoder.stream;
  z.next_in = in.data();
  z.avail_in = in.size();
  Bytes out;
  std::size_t used = 0;
  while (grow(out, used, most)) {
    z.next_out = out.data() + used;
    z.avail_out = out.size() - used;
    const lzma_ret status = lzma_code(&z, LZMA_FINISH);
    used = out.size() - z.avail_out;
    const std::size_t offset = in.size() - z.avail_in;
    if (status == LZMA_STREAM_END) break;
    if (status == LZMA_MEM_ERROR) throw std::bad_alloc();
    if (status == LZMA_BUF_ERROR) bad_archive(file, "xz", offset, "is truncated: it ends");
    if (status == LZMA_FORMAT_ERROR) bad_archive(file, "xz", offset, "is not xz (wrong magic number)");
    if (status != LZMA_OK) bad_archive(file, "xz", offset, "is corrupt");
  }
  out.resize(used);
  return out;
}

std::string command(std::string_view dataset) { return "scripts/get-data " + std::string(dataset) + " DIR"; }

}  // namespace

std::string download(std::string_view dataset) { return "Download it with `" + command(dataset) + "`"; }

Bytes read_file(const fs::path& file, std::size_t most) {
  const bool gzip = file.extension() == ".gz", xz = file.extension() == ".xz";
  if (!gzip && !xz) return read_raw(file, most + 1);
  const Bytes bytes = read_raw(file, most + most / 16 + (std::size_t{1} << 20));  // what cannot be packed grows by less
  return gzip ? unpack_gzip(file, bytes, most) : unpack_xz(file, bytes, most);
}

Bytes read_whole_file(const fs::path& file, std::size_t most, std::string_view remedy) {
  Bytes bytes = read_file(file, most);
  if (bytes.size() > most)
    throw DataError(file.string() + ": has, or unpacks to, more than " + std::to_string(most) + " bytes; " +
                    std::string(remedy));
  return bytes;
}

fs::path find_file(const fs::path& folder, std::span<const std::string> names, std::string_view dataset,
                   std::string_view remedy) {
  std::string tried;
  for (const std::string_view ending : {"", ".gz", ".xz"}) {
    for (const auto& name : names) {
      const fs::path candidate = folder / (name + std::string(ending));
      std::error_code error;
      if (fs::exists(candidate, error)) return candidate;
      tried += (tried.empty() ? "" : ", ") + candidate.filename().string();
    }
  }
  std::error_code error;
  const std::string where = folder.string() + (fs::is_directory(folder, error) ? "" : " (no such folder)");
  throw DataError("a file of the data set " + std::string(dataset) + " is missing in " + where + "; tried " + tried +
                  ". " + (remedy.empty() ? download(dataset) : std::string(remedy)));
}

fs::path data_folder(const fs::path& path, std::string_view dataset) {
  if (!path.empty()) return path;
  const char* const root = std::getenv("HEARSAY_DATA");
  if (root != nullptr && *root != '\0') return fs::path(root) / dataset;
  throw ConfigError("data.path is empty, so it is not known where the data set " + std::string(dataset) +
                    " is: set data.path (`--set data.path=DIR`), or set the environment variable HEARSAY_DATA to the "
                    "folder that has it in a subfolder " +
                    std::string(dataset) + ". " + download(dataset));
}

std::size_t limited(std::int64_t limit, std::size_t available, std::string_view key) {
  const auto wanted = static_cast<std::size_t>(limit);
  if (wanted > available) {
    throw ConfigError("data." + std::string(key) + " = " + std::to_string(limit) + ", but there are only " +
                      std::to_string(available) + " examples; 0 uses all");
  }
  return wanted == 0 ? available : wanted;
}

void malformed(const fs::path& file, std::size_t offset, std::string_view what, std::string_view found,
               std::string_view expected, std::string_view dataset) {
  throw DataError(file.string() + ": at byte " + std::to_string(offset) + ": " + std::string(what) + ": found " +
                  std::string(found) + ", expected " + std::string(expected) + ". Fetch it again: " + command(dataset));
}

}  // namespace hearsay
