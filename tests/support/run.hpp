#pragma once
// Runs a program's doctest cases. A run that selects no test case fails: it tested nothing. For the one source file of
// a program that defines DOCTEST_CONFIG_IMPLEMENT.
#include <doctest/doctest.h>

#include <iostream>

#include "tests/support/case_counter.hpp"

namespace hearsay::test {

inline int run(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int failed = context.run();
  if (context.shouldExit()) return failed;  // --help, --list-test-cases
  if (CaseCounter::count() == 0) {
    std::cerr << "no test case was run\n";
    return 1;
  }
  return failed;
}

}  // namespace hearsay::test
