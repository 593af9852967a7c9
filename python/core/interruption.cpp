#include "python/core/interruption.hpp"

#include <algorithm>
#include <atomic>

namespace hearsay::python {
namespace {

constexpr std::array watched_signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};

// A signal handler can reach nothing but statics.
std::atomic<bool> signal_has_come{false};
std::array<struct sigaction, watched_signals.size()> handlers_before{};
static_assert(std::atomic<bool>::is_always_lock_free, "a handler may only use lock-free atomics");

void do_as_before(const struct sigaction& before, int signal) {
  if (before.sa_handler == SIG_IGN) return;
  if (before.sa_handler != SIG_DFL) {
    before.sa_handler(signal);
    return;
  }
  ::sigaction(signal, &before, nullptr);
  ::raise(signal);  // comes when this handler is over
}

extern "C" void remember_and_pass_on(int signal) {
  signal_has_come = true;
  for (std::size_t i = 0; i < watched_signals.size(); ++i)
    if (watched_signals[i] == signal) do_as_before(handlers_before[i], signal);
}

}  // namespace

Interruption::Interruption(std::span<const int> more) {
  struct sigaction action {};
  action.sa_handler = remember_and_pass_on;
  const auto ends = [&](int signal) {
    return signal == SIGINT || signal == SIGTERM || std::ranges::find(more, signal) != more.end();
  };
  for (std::size_t i = 0; i < watched_signals.size(); ++i)
    if (ends(watched_signals[i])) ::sigaction(watched_signals[i], &action, &handlers_before[i]);
}

// Whoever has set another handler meanwhile keeps it.
Interruption::~Interruption() {
  for (std::size_t i = 0; i < watched_signals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(watched_signals[i], nullptr, &now);
    if (now.sa_handler == remember_and_pass_on) ::sigaction(watched_signals[i], &handlers_before[i], nullptr);
  }
}

bool Interruption::come() const { return signal_has_come; }
void Interruption::forget() { signal_has_come = false; }

}  // namespace hearsay::python
