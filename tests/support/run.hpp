#pragma once
// Runs a program's doctest cases. A run that selects no test case fails: it tested nothing. Which are selected, doctest
// tells to listeners only. For the one source file of a program that defines DOCTEST_CONFIG_IMPLEMENT.
#include <doctest/doctest.h>

#include <iostream>

namespace hearsay::test {

/// Base of our listeners: ignores what doctest tells it.
class SilentListener : public doctest::IReporter {
 public:
  explicit SilentListener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

class CaseCounter final : public SilentListener {
 public:
  using SilentListener::SilentListener;
  void test_run_end(const doctest::TestRunStats& stats) override { count() = stats.numTestCasesPassingFilters; }
  static unsigned& count() {
    static unsigned cases = 0;
    return cases;
  }
};

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
