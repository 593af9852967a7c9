#pragma once
// What a figure was measured on.
#include <string>

namespace hearsay {

/// The processor as the system calls it and how many cores there are: "Intel(R) Xeon(R) Processor, 2 cores".
std::string processor_name();

}  // namespace hearsay
