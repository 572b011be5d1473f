#ifndef STRATA_TESTS_TESTING_HAZARDS_HAZARD_VERDICT_H_
#define STRATA_TESTS_TESTING_HAZARDS_HAZARD_VERDICT_H_

#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "strata/platform/calls/call_trace.h"
#include "strata/platform/check/hazard_checker.h"
#include "strata/tests/testing/hazards/hazard_oracle.h"

namespace strata {

// The numbers of the records at which the checker reports a hazard.
inline std::set<std::uint64_t> HazardsFound(
    const std::vector<CallRecord>& program) {
  std::set<std::uint64_t> found;
  check::HazardChecker checker([&found](const check::HazardReport& report) {
    found.insert(report.second.number);
  });
  for (const CallRecord& record : program) checker.Observe(record);
  return found;
}

inline std::string ProgramText(const std::vector<CallRecord>& program) {
  std::ostringstream text;
  std::size_t number = 0;
  for (const CallRecord& record : program) {
    text << ++number << ": " << ToCsv(record) << "\n";
  }
  return text.str();
}

// Compares the checker with the brute-force oracle. Returns the hazards that
// the checker missed or invented, and the program; "" if the two agree on every
// record.
inline std::string VerdictDifference(const std::vector<CallRecord>& program) {
  const std::set<std::uint64_t> expected = HazardOracle().Judge(program);
  const std::set<std::uint64_t> found = HazardsFound(program);
  if (found == expected) return "";
  std::ostringstream text;
  for (const std::uint64_t number : expected) {
    if (found.count(number) == 0) text << "missed " << number << "\n";
  }
  for (const std::uint64_t number : found) {
    if (expected.count(number) == 0) text << "made up " << number << "\n";
  }
  text << ProgramText(program);
  return text.str();
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HAZARDS_HAZARD_VERDICT_H_
