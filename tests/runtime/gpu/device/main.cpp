// The main of the test program that needs a GPU: without one it is skipped, which is not a pass.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/support/run.hpp"

#include "runtime/gpu/machine/memory.hpp"

REGISTER_LISTENER("case_counter", 1, hearsay::test::CaseCounter);

int main(int argc, char** argv) {
  if (hearsay::device::device_count() == 0) {
    std::cout << "skipped: no device\n";
    return 77;
  }
  return hearsay::test::run(argc, argv);
}
