#include "runtime/sockets/shared_block.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "runtime/sockets/connection.hpp"

namespace hearsay::sockets {
namespace {

std::string text_of(std::size_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

CommunicationError no_room(std::size_t bytes) {
  return CommunicationError("the memory that others write into takes " + text_of(bytes) + " of this host, and " +
                            std::generic_category().message(errno) +
                            "; start fewer processes here, send a part of the values (sparsify.selector), or give the "
                            "container more memory");
}

/// The kernel ends a process that makes a longer file.
void require_limit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return;
  throw CommunicationError("a file may have " + text_of(limit.rlim_cur) +
                           " (ulimit -f), and the memory that others write into takes " + text_of(bytes) +
                           ". Raise the limit: ulimit -f unlimited");
}

std::size_t at_least_a_byte(std::size_t bytes) { return std::max<std::size_t>(bytes, 1); }

}  // namespace

SharedBlock::SharedBlock(std::size_t bytes)
    : file_(::memfd_create("hearsay", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes_(bytes) {
  require_limit(bytes);
  const auto length = static_cast<off_t>(at_least_a_byte(bytes));
  if (!file_ || ::ftruncate(file_.number(), length) != 0) throw no_room(bytes);
  int said = 0;
  do {
    said = ::fallocate(file_.number(), 0, 0, length);  // what is not there is found now, and by no signal later
  } while (said != 0 && errno == EINTR);
  if (said != 0) throw no_room(bytes);
  // Who has it mapped relies on its length.
  if (::fcntl(file_.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) throw no_room(bytes);
  map();
}

SharedBlock::SharedBlock(Descriptor file, std::size_t bytes) : file_(std::move(file)), bytes_(bytes) {
  struct stat said {};
  const int seals = file_ ? ::fcntl(file_.number(), F_GET_SEALS) : -1;
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(file_.number(), &said) != 0 ||
      static_cast<std::size_t>(said.st_size) < bytes)
    throw ConnectionLost("the memory that it shares is not what it says");
  map();
}

SharedBlock::SharedBlock(SharedBlock&& other) noexcept
    : file_(std::move(other.file_)), base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}

SharedBlock::~SharedBlock() {
  if (base_ != nullptr) ::munmap(base_, at_least_a_byte(bytes_));
}

void SharedBlock::map() {
  void* const base = ::mmap(nullptr, at_least_a_byte(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (base == MAP_FAILED) throw no_room(bytes_);
  base_ = static_cast<std::byte*>(base);
}

Descriptor SharedBlock::file() const {
  Descriptor copy(::fcntl(file_.number(), F_DUPFD_CLOEXEC, 0));
  if (!copy) throw CommunicationError("cannot share memory: " + std::generic_category().message(errno));
  return copy;
}

}  // namespace hearsay::sockets
