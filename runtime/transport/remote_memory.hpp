#pragma once
// Memory that other ranks write into: the five operations a mailbox needs of an MPI window, and nothing else.
// mpi::Window is the real one; tests use one that connects threads of a single process.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearsay {

/// What the death of a rank is to the others. Where they go on, no operation may wait for one rank.
enum class Deaths { end_the_job, others_go_on };
/// Whether somebody stands still until what is sent has come. Where nobody does, a flush need not be quick, and must
/// not take cores from those who compute.
enum class Haste { somebody_waits, nobody_waits };
/// What its ranks do with a memory.
struct MemoryUse {
  Deaths deaths = Deaths::end_the_job;
  Haste haste = Haste::somebody_waits;
};

/// One rank's end of a set of memories, one a rank, each writable by the others. Used by one thread at a time.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  /// This rank's own memory, 8-byte aligned (a window's begins at a cache line), zero at first.
  virtual std::span<std::byte> own() = 0;
  /// Starts writing `bytes` to byte `offset` of `target`'s memory. The source must stay until `flush(target)` is true.
  virtual void put(std::span<const std::byte> bytes, int target, std::size_t offset) = 0;
  /// Starts writing one 64-bit word; `offset` is a multiple of 8. Who loads it meanwhile may see some of its bytes and
  /// not yet others. The source must stay until `flush(target)` is true.
  virtual void store(const std::uint64_t& word, int target, std::size_t offset) = 0;
  /// Whether everything started towards `target` is visible there. May wait until it is; it does not where waiting
  /// would stop the computation, since communication has no thread of its own, or would keep cores from other ranks.
  virtual bool flush(int target) = 0;
  /// Makes what others have written to `own()` visible to this rank's loads, and moves communication on.
  virtual void sync() = 0;
  /// For how many calls of `sync` a store that nobody waits for may be put off, so that it travels with others; 0 where
  /// who waits looks no further until something has come.
  virtual int patience() const { return 0; }
  /// From now on who waits for something to come looks again after so long at the latest, though nothing has come.
  /// Whoever polls does so anyway.
  virtual void look_again_within(double seconds) { static_cast<void>(seconds); }
  /// The 8-byte word at `offset` of `target`'s memory, as it was when it was last asked for; nothing as long as no
  /// answer has come, which may be for ever. Asks again. Never waits. Nothing, too, where nobody can stand still.
  virtual std::optional<std::uint64_t> peek(int target, std::size_t offset) {
    static_cast<void>(target), static_cast<void>(offset);
    return std::nullopt;
  }
  /// The ranks of which the transport itself knows that they are gone, in the order in which it has learnt of them; it
  /// need not know of any. Any thread.
  virtual std::vector<int> gone() const { return {}; }
  /// Whether a process is at this place, as far as the transport knows: some may come later. What is put to one that is
  /// not there is lost. Any thread.
  virtual bool is_here(int target) const {
    static_cast<void>(target);
    return true;
  }
  /// Whether it has opened its memory, as far as is known here: one that has just come may write to this process's
  /// before. What is put to it until then is lost. Any thread.
  virtual bool is_open(int target) const { return is_here(target); }
};

}  // namespace hearsay
