#pragma once
// Text of others on a terminal: what a file, a name or an argument says is shown, and commands the terminal nothing.
#include <string>
#include <string_view>

namespace hearsay {

/// `text` in one line that is all to be seen: line breaks as \n, other control characters and bytes that are no UTF-8
/// as \x1b. What can be read stays as it is.
std::string shown(std::string_view text);

/// The same of a message of ours, whose own further lines begin with two blanks: their line breaks stay.
std::string shown_message(std::string_view message);

/// The same of a text of ours that has many lines: line breaks stay. What others say in it has been through `shown`.
std::string shown_lines(std::string_view text);

}  // namespace hearsay
