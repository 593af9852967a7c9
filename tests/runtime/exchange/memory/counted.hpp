#pragma once
// What each thread has in memory at once: this program's operator new writes on every piece whose it is.
#include <cstddef>

namespace hearsay::test {

/// From here on, what this thread asks for is on its account, until it is freed, by whatever thread.
void begin_account();
/// The most that was on this thread's account at once, in bytes.
std::size_t most_on_account();

}  // namespace hearsay::test
