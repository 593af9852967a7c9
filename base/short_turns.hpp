#pragma once

namespace hearsay {

/// Asks the kernel for short turns of the calling thread: when it wakes it runs at once, for a moment, although other
/// threads want the core as well. For a thread that mostly sleeps and that others wait for: where ranks share cores, a
/// packet needs several of its turns, each of which else comes behind the turns of all who compute, 3 ms and more.
/// Nothing happens where the kernel does not know of it (Linux before 6.12).
void prefer_short_turns();

}  // namespace hearsay
