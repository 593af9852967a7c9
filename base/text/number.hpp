#pragma once
// Numbers within sentences.
#include <cstdio>
#include <string>

namespace hearsay {

/// x in `digits` significant digits, from 1 to 17, without zeros at the end: 0.0123, 1.5e-07, inf, nan.
inline std::string number_text(double x, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, x);
  return text;
}

}  // namespace hearsay
