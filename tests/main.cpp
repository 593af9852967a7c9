// The main of every test program that runs in one process.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/support/run.hpp"

REGISTER_LISTENER("case_counter", 1, hearsay::test::CaseCounter);

int main(int argc, char** argv) { return hearsay::test::run(argc, argv); }
