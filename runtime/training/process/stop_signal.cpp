#include "runtime/training/process/stop_signal.hpp"

#include <signal.h>
#include <string.h>

#include <array>
#include <atomic>
#include <string>

namespace hearsay {
namespace {

constexpr std::array stopping_signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};

// A signal handler can reach nothing but statics; these are the only mutable ones of the program.
std::atomic<int> first_signal{0};
std::array<struct sigaction, stopping_signals.size()> handlers_before{};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may only use lock-free atomics");

extern "C" void remember_signal(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

}  // namespace

Stopped::Stopped(int signal)
    : std::runtime_error("stopped by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")"),
      signal_(signal) {}

StopSignal::StopSignal() {
  first_signal = 0;
  for (std::size_t i = 0; i < stopping_signals.size(); ++i) {
    const int signal = stopping_signals[i];
    const bool asks = signal == SIGINT || signal == SIGTERM;  // the others warn, and may do so every second
    struct sigaction action {};
    action.sa_handler = remember_signal;
    action.sa_flags = SA_RESTART | (asks ? static_cast<int>(SA_RESETHAND) : 0);
    ::sigaction(signal, &action, &handlers_before[i]);
    // A shell that starts a program in the background ignores SIGINT for it; whoever sends one all the same means it.
    if (!asks && handlers_before[i].sa_handler == SIG_IGN) ::sigaction(signal, &handlers_before[i], nullptr);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < stopping_signals.size(); ++i)
    ::sigaction(stopping_signals[i], &handlers_before[i], nullptr);
}

int StopSignal::received() const { return first_signal; }

}  // namespace hearsay
