// hearsay watch RUN
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "apps/hearsay/commands.hpp"
#include "apps/shared/output.hpp"
#include "apps/shared/text.hpp"
#include "apps/tools/watch_view.hpp"
#include "base/error.hpp"
#include "runtime/training/process/stop_signal.hpp"

namespace hearsay {
namespace {

constexpr std::size_t usual_width = 100;

/// Columns of the terminal; 100 where there is none.
std::size_t terminal_width() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : usual_width;
}

}  // namespace

int watch_command(const std::filesystem::path& directory, double every_s, bool once) {
  if (!(every_s >= 0.1)) throw ConfigError("--every " + significant(every_s, 3) + ": must be 0.1 seconds or more");
  const StopSignal stop;
  WatchedRun run(directory);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const std::string view = watch_view(run, terminal_width());
    if (terminal && !once) std::printf("\033[H\033[J");  // home, and clear what is below
    print(view);
    std::fflush(stdout);
    if (once || run.status() || stop.received() != 0) return 0;
    if (!terminal) std::printf("\n");
    const auto next = std::chrono::steady_clock::now() + std::chrono::duration<double>(every_s);
    while (std::chrono::steady_clock::now() < next && stop.received() == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    run.poll();
  }
}

}  // namespace hearsay
