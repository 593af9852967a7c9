#include "apps/shared/output.hpp"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>

#include "apps/shared/launch.hpp"
#include "base/error.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {

void print(std::string_view text) {
  const std::string all = shown_lines(text);
  std::fwrite(all.data(), 1, all.size(), stdout);
}

void say(std::string_view head, std::string_view message) {
  const std::string line = std::string(head) + " " + shown_message(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void say_notes(const Config& config) {
  if (launched_rank() != 0) return;
  for (const std::string& note : config.document().notes()) say("note:", note);
}

void require_printed() {
  std::cout.flush();
  const bool lost_before = std::ferror(stdout) != 0 || !std::cout;
  errno = 0;
  const bool lost_now = std::fflush(stdout) != 0;
  if (!lost_before && !lost_now) return;
  const std::string why = errno != 0 ? " (" + std::generic_category().message(errno) + ")" : "";
  throw DataError("standard output cannot be written" + why +
                  ": not all that was asked for has been printed; print it where there is room");
}

}  // namespace hearsay
