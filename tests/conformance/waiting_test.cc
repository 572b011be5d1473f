// docs/gpu/waiting.md lists the questions that only a GPU can answer. The list
// must stay correct.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "strata/tests/testing/devices/device_fixture.h"

namespace strata {
namespace {

// The names of this program's tests that record the behaviour of a GPU.
std::set<std::string> PinningTests() {
  std::set<std::string> names;
  const ::testing::UnitTest& program = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      std::string name = suite.GetTestInfo(j)->name();
      name.erase(name.find('/') < name.size() ? name.find('/') : name.size());
      if (name.find(kPins) != std::string::npos) names.insert(name);
    }
  }
  return names;
}

// The tests in the first column of a table of the document.
std::set<std::string> DocumentedTests() {
  std::set<std::string> names;
  std::ifstream file(STRATA_SOURCE_DIR "/docs/gpu/waiting.md");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    if (name.find(kPins) != std::string::npos) names.insert(name);
  }
  return names;
}

TEST(WaitingTest, DocumentListsTheTestsThatRecordSomething) {
  ASSERT_FALSE(PinningTests().empty());
  EXPECT_EQ(DocumentedTests(), PinningTests());
}

}  // namespace
}  // namespace strata
