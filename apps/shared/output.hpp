#pragma once
// What the programs say, on stdout and stderr: whatever names and texts of others are in it, a terminal shows it and
// obeys nothing of it; and nothing that stdout has not taken is passed over in silence.
#include <string_view>

#include "base/config/config.hpp"

namespace hearsay {

/// Prints a text of ours on stdout; its line breaks stay (`shown_lines`).
void print(std::string_view text);
/// Prints "HEAD MESSAGE" and a line break on stderr; of the message's line breaks, those of our own stay
/// (`shown_message`).
void say(std::string_view head, std::string_view message);

/// Writes the notes of a configuration that was read to stderr, on rank 0.
void say_notes(const Config& config);

/// Throws DataError unless all that was printed has reached stdout: a disk may be full. To be asked once, at the end.
void require_printed();

}  // namespace hearsay
