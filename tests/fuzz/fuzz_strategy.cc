// A target of libFuzzer for the strategy STRATA_FUZZ_STRATEGY; see
// strategy_program.h.

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/tests/fuzz/strategy_program.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  // A failed expectation ends the process, as the fuzzer requires.
  ::testing::InitGoogleTest(argc, *argv);
  GTEST_FLAG_SET(throw_on_failure, true);
  // Refused calls are logged, but they are expected here.
  FLAGS_minloglevel = google::GLOG_FATAL;
  return 0;
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  strata::RunStrategyProgram(STRATA_FUZZ_STRATEGY,
                             {reinterpret_cast<const char*>(data), size});
  return 0;
}
