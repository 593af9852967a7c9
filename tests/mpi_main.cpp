// The main of every test program that runs under mpirun. All ranks run the same cases in the same order; rank 0 and the
// ranks on which something fails print. A rank that leaves a case early (REQUIRE, exception, crash) would keep the
// others waiting for ever, so it ends the job. Fails if the job has not as many ranks as HEARSAY_EXPECTED_RANKS says,
// or if no test case was run.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/support/mpi_environment.hpp"
#include "tests/support/run.hpp"

namespace {

using hearsay::mpi::Environment;

Environment* environment = nullptr;  // main's; test cases and listeners cannot be handed anything

/// Ends the job when this rank leaves a test case early.
class JobEnder final : public hearsay::test::SilentListener {
 public:
  explicit JobEnder(const doctest::ContextOptions& options) : SilentListener(options), options_(options) {}

  void test_case_start(const doctest::TestCaseData& test_case) override {
    name_ = test_case.m_name;
    left_ = false;
  }
  void log_assert(const doctest::AssertData& data) override {
    if (data.m_failed && (data.m_at & doctest::assertType::is_require) != 0) left_ = true;
  }
  void test_case_exception(const doctest::TestCaseException& exception) override {
    left_ = true;
    if (exception.is_crash) end_job(exception.error_string.c_str());
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    if (left_) end_job("left early");
  }

 private:
  void end_job(const char* reason) const {
    if (const auto* captured = dynamic_cast<std::ostringstream*>(options_.cout)) std::cerr << captured->str();
    std::cerr << "rank " << environment->rank() << ", test case \"" << name_ << "\": " << reason << std::endl;
    environment->abort(1);
  }

  const doctest::ContextOptions& options_;
  std::string name_;
  bool left_ = false;
};

bool ranks_as_expected() {
  const char* const expected = std::getenv("HEARSAY_EXPECTED_RANKS");
  if (expected == nullptr || std::to_string(environment->ranks()) == expected) return true;
  std::cerr << "the job has " << environment->ranks() << " ranks, the test wants " << expected << "\n";
  return false;
}

int run(doctest::Context& context) {
  std::ostringstream captured;
  if (environment->rank() != 0) context.setCout(&captured);
  const int failed = context.run();
  if (context.shouldExit()) return failed;
  const bool empty = hearsay::test::CaseCounter::count() == 0;
  if (failed != 0) std::cerr << "rank " << environment->rank() << ":\n" << captured.str() << std::flush;
  if (empty && environment->rank() == 0) std::cerr << "no test case was run\n";
  return empty ? 1 : failed;
}

}  // namespace

hearsay::mpi::Environment& hearsay::test::mpi_environment() { return *environment; }

REGISTER_LISTENER("case_counter", 1, hearsay::test::CaseCounter);
REGISTER_LISTENER("job_ender", 2, JobEnder);

int main(int argc, char** argv) {
  Environment mpi;
  environment = &mpi;
  if (!ranks_as_expected()) return 1;
  doctest::Context context(argc, argv);
  return run(context);
}
