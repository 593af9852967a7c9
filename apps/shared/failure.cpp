#include "apps/shared/failure.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/shared/launch.hpp"
#include "apps/shared/output.hpp"
#include "base/error.hpp"
#include "runtime/training/process/stop_signal.hpp"

namespace hearsay {
namespace {

constexpr int signal_base = 128;
constexpr std::chrono::seconds time_for_rank_0{5};

/// Code and words as bytes, to be gathered.
std::vector<std::byte> packed(const Failure& failure) {
  std::vector<std::byte> bytes(sizeof failure.code + failure.message.size());
  std::memcpy(bytes.data(), &failure.code, sizeof failure.code);
  std::memcpy(bytes.data() + sizeof failure.code, failure.message.data(), failure.message.size());
  return bytes;
}

Failure unpacked(const std::vector<std::byte>& bytes) {
  Failure failure;
  std::memcpy(&failure.code, bytes.data(), sizeof failure.code);
  failure.message.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof failure.code,
                         bytes.size() - sizeof failure.code);
  return failure;
}

/// Rank 0's own message, or one that all share, stands without a rank.
void print_different_messages(const std::vector<Failure>& failures) {
  std::vector<std::string> said{""};
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    const std::string& message = failures[rank].message;
    if (std::find(said.begin(), said.end(), message) != said.end()) continue;
    said.push_back(message);
    say(rank == 0 ? "hearsay:" : "hearsay: [rank " + std::to_string(rank) + "]", message);
  }
}

}  // namespace

Failure failure_in_flight() {
  try {
    throw;
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what()};
  } catch (const Stopped& stopped) {
    return {signal_base + stopped.signal(), stopped.what()};
  } catch (const std::bad_alloc&) {
    return {static_cast<int>(ExitCode::bug), "out of memory"};
  } catch (const std::exception& bug) {
    // LibTorch has one type for all its errors: only its words (a sentence, then the stack) tell that memory was short.
    const std::string_view said = bug.what();
    if (const auto wanted = said.find("you tried to allocate "); wanted != std::string_view::npos)
      return {static_cast<int>(ExitCode::bug),
              "out of memory: " + std::string(said.substr(wanted, said.find_first_of(".\n", wanted) - wanted)) +
                  ". Take a smaller model or data.batch_size, or fewer ranks on this host"};
    return {static_cast<int>(ExitCode::bug), std::string("internal error, please report it: ") + bug.what()};
  } catch (...) {
    return {static_cast<int>(ExitCode::bug), "internal error of an unknown kind, please report it"};
  }
}

void note_exit_code(int code) {
  const char* const file = std::getenv("HEARSAY_EXIT_FILE");
  if (file == nullptr) return;
  if (std::FILE* const out = std::fopen(file, "a")) {
    std::fprintf(out, "%d\n", code);
    std::fclose(out);
  }
}

int attempt_together(const Job& job, const std::function<void()>& work) {
  Failure own;
  try {
    work();
  } catch (...) {
    own = failure_in_flight();
  }
  const auto communicator = job.communicator();
  std::vector<Failure> failures;
  for (const auto& bytes : communicator->gather(packed(own))) failures.push_back(unpacked(bytes));
  if (job.rank() == 0) print_different_messages(failures);
  std::vector<double> highest{static_cast<double>(own.code)};
  communicator->maximum(highest);  // also keeps ranks from leaving before rank 0 has printed
  return static_cast<int>(highest[0]);
}

int report_failure(const Failure& failure, const Job* job) {
  const int rank = job == nullptr ? launched_rank() : job->rank();
  const bool in_a_job = job != nullptr && job->ranks() > 1;
  const bool stopped = failure.code > signal_base;
  // Where all ranks fail alike, rank 0 speaks for them and is given the time to finish its reports.
  const bool speaks = rank == 0 || (in_a_job && !stopped);
  const std::string who = in_a_job && !stopped ? " [rank " + std::to_string(rank) + "]" : "";
  if (speaks) say("hearsay:" + who, failure.message);
  std::fflush(nullptr);
  note_exit_code(failure.code);
  if (!speaks && in_a_job) std::this_thread::sleep_for(time_for_rank_0);
  if (in_a_job) job->abort(failure.code);
  return failure.code;
}

void leave(int exit_code) {
  std::fflush(nullptr);
  ::_exit(exit_code);
}

}  // namespace hearsay
