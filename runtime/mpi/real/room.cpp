#include "runtime/mpi/real/room.hpp"

#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/mpi/check.hpp"
#include "runtime/mpi/environment.hpp"

namespace hearsay::mpi {
namespace {

using Bytes = std::uint64_t;

constexpr const char* shared_memory = "/dev/shm";
constexpr Bytes megabyte = 1'000'000;

struct Room {
  Bytes size = 0;
  Bytes free = 0;
};

std::optional<Room> room_in(const std::string& folder) {
  struct statvfs said {};
  if (::statvfs(folder.c_str(), &said) != 0) return std::nullopt;
  return Room{.size = said.f_blocks * said.f_frsize, .free = said.f_bavail * said.f_frsize};
}

/// Whether the folder is on a file system that this host alone writes to: tmpfs, ext, xfs, btrfs, overlay (a
/// container's), zfs, f2fs.
bool is_of_this_host(const std::string& folder) {
  constexpr std::array<Bytes, 7> known{0x01021994, 0xef53, 0x58465342, 0x9123683e, 0x794c7630, 0x2fc12fc1, 0xf2f52010};
  struct statfs said {};
  return ::statfs(folder.c_str(), &said) == 0 &&
         std::ranges::find(known, static_cast<Bytes>(said.f_type) & 0xffffffff) != known.end();
}

bool is_open_mpi() { return Environment::library_version().starts_with("Open MPI"); }

/// What Open MPI has taken for a parameter of its own, wherever it was set. It takes the thread level that is asked for
/// here for that of all of MPI, so this asks for what there is.
std::string parameter(const char* name) {
  int level = 0, provided = 0, index = 0, length = 0;
  if (MPI_Query_thread(&level) != MPI_SUCCESS || MPI_T_init_thread(level, &provided) != MPI_SUCCESS) return {};
  std::string value;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &length) == MPI_SUCCESS) {
    std::vector<char> text(static_cast<std::size_t>(length) + 1);
    if (MPI_T_cvar_read(handle, text.data()) == MPI_SUCCESS) value = text.data();
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return value;
}

/// The folder for the windows of one host, that of the roomier component of Open MPI: which one it will take is not
/// known before. Nothing where the user has chosen one that needs none.
std::optional<std::string> folder_of_windows() {
  if (!is_open_mpi()) return shared_memory;
  if (const char* const asked = std::getenv("OMPI_MCA_osc"); asked != nullptr) {
    const std::string_view osc = asked;
    const bool named = osc.find("sm") != std::string_view::npos || osc.find("rdma") != std::string_view::npos;
    if (osc.starts_with('^') == named) return std::nullopt;
  }
  const std::string rdma = parameter("osc_rdma_backing_directory"), sm = parameter("osc_sm_backing_directory");
  const auto room_of_rdma = room_in(rdma), room_of_sm = room_in(sm);
  if (!room_of_rdma || !room_of_sm) return std::nullopt;
  return room_of_rdma->free >= room_of_sm->free ? rdma : sm;
}

std::string text_of(Bytes bytes) { return std::to_string((bytes + megabyte - 1) / megabyte) + " MB"; }

/// All that this process has mapped.
Bytes mapped_now() {
  Bytes pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

/// The limit where less than `needed` is left under it.
std::optional<Bytes> too_low(int resource, Bytes needed) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return std::nullopt;
  if (limit.rlim_cur == RLIM_INFINITY || needed <= limit.rlim_cur) return std::nullopt;
  return limit.rlim_cur;
}

std::string complaint_of_folder(Bytes needed, int ranks) {
  const auto folder = folder_of_windows();
  const auto room = folder ? room_in(*folder) : std::nullopt;
  if (!room || needed <= room->free) return {};
  const std::string remedy =
      is_open_mpi() ? "; or name a folder of this host with room, before mpirun's -n: --mca osc_rdma_backing_directory "
                      "DIR --mca osc_sm_backing_directory DIR (TMPDIR is taken by itself where it has more)"
                    : "";
  return "the windows of " + std::to_string(ranks) + " ranks take " + text_of(needed) + " of " + *folder +
         ", which has " + text_of(room->size) + ", " + text_of(room->free) +
         " of them free. Give a container more (docker run --shm-size=" + std::to_string(2 * needed / megabyte + 64) +
         "m; in Kubernetes an emptyDir with medium: Memory on /dev/shm)" + remedy;
}

std::string complaint_of_limits(Bytes needed) {
  constexpr Bytes kilobyte = 1024;  // what ulimit counts in
  if (const auto limit = too_low(RLIMIT_AS, mapped_now() + needed))
    return "a rank may map " + text_of(*limit) + " (ulimit -v), has mapped " + text_of(mapped_now()) +
           ", and the windows of this host take " + text_of(needed) +
           " more. Raise the limit: ulimit -v unlimited, or at least " +
           std::to_string(2 * (mapped_now() + needed) / kilobyte);
  if (const auto limit = too_low(RLIMIT_FSIZE, needed))
    return "a file may have " + text_of(*limit) + " (ulimit -f), and that of this host's windows takes " +
           text_of(needed) + ". Raise the limit: ulimit -f unlimited";
  return {};
}

/// The words of the lowest rank that has some, on all ranks; empty where none has.
std::string words_of_the_first(const std::string& own, MPI_Comm ranks) {
  int rank = 0, size = 0;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  int first = own.empty() ? size : rank;
  check(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, ranks), "MPI_Allreduce");
  if (first == size) return {};
  std::string words(own);
  int length = static_cast<int>(words.size());
  check(MPI_Bcast(&length, 1, MPI_INT, first, ranks), "MPI_Bcast");
  words.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(words.data(), length, MPI_CHAR, first, ranks), "MPI_Bcast");
  return words;
}

}  // namespace

void choose_roomy_folder() {
  constexpr Bytes enough = 256 * megabyte;
  constexpr int keep = 0;
  std::error_code error;
  const std::string other = std::filesystem::temp_directory_path(error);
  const auto here = room_in(shared_memory), there = error ? std::nullopt : room_in(other);
  if (!here || !there || here->free >= enough || there->free <= 2 * here->free || !is_of_this_host(other)) return;
  for (const char* of : {"OMPI_MCA_osc_rdma_backing_directory", "OMPI_MCA_osc_sm_backing_directory",
                         "OMPI_MCA_btl_vader_backing_directory"})
    ::setenv(of, other.c_str(), keep);
}

// MPI puts the windows of one host into one file, which every rank there maps as a whole. Over a network it takes no
// file, or tells by itself that it can have none.
void require_room(std::size_t bytes, MPI_Comm ranks) {
  constexpr Bytes margin_of_a_rank = 65'536;  // for MPI's own words about each window
  MPI_Comm host = MPI_COMM_NULL;
  int here = 0, all = 0;
  check(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  MPI_Comm_size(host, &here);
  MPI_Comm_size(ranks, &all);
  Bytes needed = bytes + margin_of_a_rank;
  check(MPI_Allreduce(MPI_IN_PLACE, &needed, 1, MPI_UINT64_T, MPI_SUM, host), "MPI_Allreduce");
  MPI_Comm_free(&host);
  std::string own;
  if (here == all) own = complaint_of_limits(needed);
  if (here == all && all > 1 && own.empty()) own = complaint_of_folder(needed, all);
  if (const std::string words = words_of_the_first(own, ranks); !words.empty()) throw CommunicationError(words);
}

}  // namespace hearsay::mpi
