// The main of every test program that runs in one process. A run that selects no test case fails: it tested nothing.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>

#include "tests/support/case_counter.hpp"

REGISTER_LISTENER("case_counter", 1, hearsay::test::CaseCounter);

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int failed = context.run();
  if (context.shouldExit()) return failed;  // --help, --list-test-cases
  if (hearsay::test::CaseCounter::count() == 0) {
    std::cerr << "no test case was run\n";
    return 1;
  }
  return failed;
}
