#include "runtime/sockets/shared_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "runtime/sockets/descriptor.hpp"

namespace hearsay::sockets {
namespace {

constexpr std::string_view unfinished = ".new";  // how names of files end that are being written

bool is_name(const std::string& text) {
  constexpr std::size_t longest = 64;
  return !text.empty() && text.size() <= longest && text.front() != '.' && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

DataError cannot(const std::string& what, const std::filesystem::path& path) {
  return DataError("the rendezvous: cannot " + what + " " + path.string() + ": " +
                   std::generic_category().message(errno) +
                   "; let HEARSAY_RENDEZVOUS name a folder that all processes of the job may write");
}

/// In a folder that others may write, anybody could pass for a member.
void require_own(const std::filesystem::path& folder) {
  struct stat said {};
  if (::lstat(folder.c_str(), &said) != 0) throw cannot("look at", folder);
  if (!S_ISDIR(said.st_mode) || said.st_uid != ::geteuid() || (said.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw ConfigError("the rendezvous " + folder.string() +
                      " belongs to another user, or others may look into it; let HEARSAY_RENDEZVOUS name another "
                      "folder, or take their rights (chmod 700)");
}

}  // namespace

void require_private_folder(const std::filesystem::path& folder) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) throw cannot("make", folder);
  require_own(folder);
}

SharedFolder::SharedFolder(const std::filesystem::path& folder, const std::string& job) : folder_(folder / job) {
  if (!is_name(job))
    throw ConfigError("'" + job +
                      "' cannot be the name of a job: up to 64 letters, digits, '-', '_' and '.', which does not come "
                      "first (HEARSAY_JOB)");
  std::error_code ignored;  // whoever makes it: what counts is that it is there
  std::filesystem::create_directories(folder, ignored);
  require_private_folder(folder_);
}

SharedFolder::~SharedFolder() { ::rmdir(folder_.c_str()); }

std::filesystem::path SharedFolder::write(const std::string& key, const std::string& text) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const auto path = folder_ / ("." + key + "-" + host + "-" + std::to_string(::getpid()) + "-" +
                               std::to_string(written_++) + std::string(unfinished));
  const auto opened = [&] {
    return Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
  };
  Descriptor file = opened();
  if (!file && errno == ENOENT) {  // whoever has just left it has found it empty
    require_private_folder(folder_);
    file = opened();
  }
  if (!file || ::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.number()) != 0)
    throw cannot("write", path);
  return path;
}

void SharedFolder::put(const std::string& key, const std::string& text) {
  const auto path = write(key, text);
  if (::rename(path.c_str(), (folder_ / key).c_str()) != 0) throw cannot("write", folder_ / key);
}

std::string SharedFolder::put_if_absent(const std::string& key, const std::string& text) {
  if (auto there = get(key)) return *there;
  const auto path = write(key, text);
  const bool first = ::link(path.c_str(), (folder_ / key).c_str()) == 0;
  if (!first && errno != EEXIST) throw cannot("write", folder_ / key);
  ::unlink(path.c_str());
  if (first) return text;
  if (auto there = get(key)) return *there;
  return put_if_absent(key, text);  // gone again
}

std::optional<std::string> SharedFolder::get(const std::string& key) {
  std::ifstream file(folder_ / key, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> SharedFolder::list(const std::string& prefix) {
  std::vector<std::string> keys;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    std::string name = entry.path().filename();
    if (name.starts_with(prefix) && !name.starts_with('.')) keys.push_back(std::move(name));
  }
  std::ranges::sort(keys);
  return keys;
}

void SharedFolder::remove(const std::string& key) { ::unlink((folder_ / key).c_str()); }

// Nobody is told of changes on a network file system: look now and then, more rarely the longer it takes.
void SharedFolder::watch(std::chrono::milliseconds longest) {
  constexpr std::chrono::milliseconds rarest{50};
  std::this_thread::sleep_for(std::min(nap_, longest));
  nap_ = std::min(2 * nap_, rarest);
}

}  // namespace hearsay::sockets
