#include "strata/platform/sim/faults/fault_injector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata::sim {
namespace {

// The failing calls among `calls` calls of mem_alloc: "..x" if the third fails.
std::string Pattern(FaultInjector* injector, int calls,
                    std::size_t bytes = 4096) {
  std::string pattern;
  for (int i = 0; i < calls; ++i) {
    const bool fails =
        injector->Next(DeviceCall::kMemAlloc, bytes).status != Status::kSuccess;
    pattern += fails ? 'x' : '.';
  }
  return pattern;
}

std::string PatternOf(const std::string& rules, int calls) {
  FaultInjector injector(0, 1);
  for (const FaultRule& rule : ParseFaultRules(rules)) injector.Add(rule);
  return Pattern(&injector, calls);
}

std::string RuleError(const std::string& rules) {
  try {
    ParseFaultRules(rules);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(FaultInjectorTest, NthFailsOnceOrCountTimesInARow) {
  EXPECT_EQ(PatternOf("mem_alloc:nth=3", 8), "..x.....");
  EXPECT_EQ(PatternOf("mem_alloc:nth=3,count=2", 8), "..xx....");
}

TEST(FaultInjectorTest, EveryFailsEachMultipleUpToCount) {
  EXPECT_EQ(PatternOf("mem_alloc:every=2", 8), ".x.x.x.x");
  EXPECT_EQ(PatternOf("mem_alloc:every=2,count=3", 8), ".x.x.x..");
}

TEST(FaultInjectorTest, RuleWithoutTriggerFailsAllUpToCount) {
  EXPECT_EQ(PatternOf("mem_alloc", 4), "xxxx");
  EXPECT_EQ(PatternOf("mem_alloc:count=2", 4), "xx..");
}

TEST(FaultInjectorTest, NoRuleFailsNothing) {
  EXPECT_EQ(PatternOf("", 4), "....");
  EXPECT_EQ(PatternOf("mem_free", 4), "....");
}

TEST(FaultInjectorTest, RulesCountOnTheirOwn) {
  EXPECT_EQ(PatternOf("mem_alloc:nth=2;mem_alloc:nth=4;", 6), ".x.x..");
}

TEST(FaultInjectorTest, ProbabilityDependsOnSeedAndDeviceOnly) {
  const FaultRule rule = ParseFaultRules("mem_alloc:probability=0.25")[0];
  const auto pattern = [&](int device, std::uint64_t seed) {
    FaultInjector injector(device, seed);
    injector.Add(rule);
    return Pattern(&injector, 4000);
  };
  const std::string first = pattern(0, 1);
  EXPECT_EQ(first, pattern(0, 1));
  EXPECT_NE(first, pattern(0, 2));
  EXPECT_NE(first, pattern(1, 1));
  const auto failures = std::count(first.begin(), first.end(), 'x');
  EXPECT_GT(failures, 850);
  EXPECT_LT(failures, 1150);
}

TEST(FaultInjectorTest, ProbabilityOneFailsAll) {
  EXPECT_EQ(PatternOf("mem_alloc:probability=1", 50), std::string(50, 'x'));
}

// A program may set a locale with a decimal comma.
TEST(FaultInjectorTest, ProbabilityIsReadTheSameInEveryLocale) {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  const bool found = std::setlocale(LC_NUMERIC, "de_DE.utf8") != nullptr ||
                     std::setlocale(LC_NUMERIC, "fr_FR.utf8") != nullptr;
  if (!found) GTEST_SKIP() << "no locale with a decimal comma is installed";
  double probability = 0;
  EXPECT_NO_THROW(
      probability =
          ParseFaultRules("mem_alloc:probability=0.25")[0].probability);
  std::setlocale(LC_NUMERIC, before.c_str());
  EXPECT_EQ(probability, 0.25);
}

TEST(FaultInjectorTest, MinBytesLeavesSmallerCallsAlone) {
  FaultInjector injector(0, 1);
  injector.Add(ParseFaultRules("mem_alloc:min_bytes=100,nth=2")[0]);
  EXPECT_EQ(Pattern(&injector, 3, 99), "...");
  EXPECT_EQ(Pattern(&injector, 3, 100), ".x.");
}

TEST(FaultInjectorTest, DeviceLimitsTheRule) {
  const FaultRule rule = ParseFaultRules("mem_alloc:device=1")[0];
  FaultInjector zero(0, 1);
  FaultInjector one(1, 1);
  zero.Add(rule);
  one.Add(rule);
  EXPECT_EQ(Pattern(&zero, 2), "..");
  EXPECT_EQ(Pattern(&one, 2), "xx");
}

TEST(FaultInjectorTest, StatusIsTheRulesOrTheCallsOwn) {
  FaultInjector injector(0, 1);
  for (const FaultRule& rule :
       ParseFaultRules("mem_alloc;event_record;event_query:status=NotReady;"
                       "stream_create:status=400;malloc_managed")) {
    injector.Add(rule);
  }
  EXPECT_EQ(injector.Next(DeviceCall::kMemAlloc, 1).status,
            Status::kMemoryAllocation);
  EXPECT_EQ(injector.Next(DeviceCall::kMallocManaged, 1).status,
            Status::kMemoryAllocation);
  EXPECT_EQ(injector.Next(DeviceCall::kEventRecord, 0).status,
            Status::kUnknown);
  EXPECT_EQ(injector.Next(DeviceCall::kEventQuery, 0).status,
            Status::kNotReady);
  EXPECT_EQ(injector.Next(DeviceCall::kStreamCreate, 0).status,
            Status::kInvalidResourceHandle);
  EXPECT_EQ(injector.Next(DeviceCall::kMemFree, 0).status, Status::kSuccess);
}

TEST(FaultInjectorTest, DelaysAddUpUntilAFailureDecides) {
  FaultInjector injector(0, 1);
  for (const FaultRule& rule : ParseFaultRules(
           "mem_alloc:delay_ns=5;mem_alloc:delay_ns=7,sticky=1;mem_alloc")) {
    injector.Add(rule);
  }
  const FaultEffect effect = injector.Next(DeviceCall::kMemAlloc, 1);
  EXPECT_EQ(effect.delay_ns, 12u);
  EXPECT_EQ(effect.status, Status::kIllegalAddress);
  EXPECT_TRUE(effect.sticky);
}

TEST(FaultInjectorTest, RuleWithADelayAloneFailsNothing) {
  EXPECT_EQ(PatternOf("mem_alloc:delay_ns=5", 3), "...");
  EXPECT_EQ(PatternOf("mem_alloc:delay_ns=5,status=Unknown", 3), "xxx");
  EXPECT_EQ(PatternOf("mem_alloc:invalidate=1", 3), "...");
  EXPECT_EQ(PatternOf("mem_alloc:invalidate=1,nth=2,status=Unknown", 3), ".x.");
}

TEST(FaultInjectorTest, ClearEndsAllRules) {
  FaultInjector injector(0, 1);
  injector.Add(FaultRule{});
  EXPECT_EQ(Pattern(&injector, 2), "xx");
  injector.Clear();
  EXPECT_EQ(Pattern(&injector, 2), "..");
}

TEST(FaultInjectorTest, TextErrorsNameTheFlagAndThePart) {
  const struct {
    const char* rules;
    const char* part;
  } kCases[] = {
      {"mem_aloc:nth=1", "'mem_aloc'"},
      {"mem_alloc:nth=0", "'nth=0'"},
      {"mem_alloc:nth=", "'nth='"},
      {"mem_alloc:nth=-1", "'nth=-1'"},
      {"mem_alloc:nth=1x", "'nth=1x'"},
      {"mem_alloc:nth=99999999999999999999", "'nth=99999999999999999999'"},
      {"mem_alloc:probability=0", "'probability=0'"},
      {"mem_alloc:probability=1.5", "'probability=1.5'"},
      {"mem_alloc:probability=nan", "'probability=nan'"},
      {"mem_alloc:probability=0.5x", "'probability=0.5x'"},
      {"mem_alloc:status=Success", "'status=Success'"},
      {"mem_alloc:status=Nope", "'status=Nope'"},
      {"mem_alloc:device=-1", "'device=-1'"},
      {"mem_alloc:often=1", "'often=1'"},
      {"mem_alloc:sticky=2", "'sticky=2'"},
      {"mem_alloc:delay_ns=0", "'delay_ns=0'"},
      {"mem_alloc:invalidate=2", "'invalidate=2'"},
      {"mem_alloc:delay_ns=9999999999999999", "'delay_ns=9999999999999999'"},
      {"mem_alloc:", "'mem_alloc:'"},
      {"mem_alloc:nth=1,", "'mem_alloc:nth=1,'"},
      {"mem_alloc:nth=1,every=2", "'mem_alloc:nth=1,every=2'"},
      {"mem_free;;mem_alloc", "''"},
      {" mem_alloc", "' mem_alloc'"},
  };
  for (const auto& c : kCases) {
    const std::string error = RuleError(c.rules);
    EXPECT_EQ(error.rfind("strata_sim_fault: ", 0), 0u) << c.rules << error;
    EXPECT_NE(error.find(c.part), std::string::npos)
        << c.rules << ": " << error;
  }
}

TEST(FaultInjectorTest, AnUnknownCallIsToldWhichThereAre) {
  const std::string error = RuleError("mem_aloc");
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const std::string name = DeviceCallName(static_cast<DeviceCall>(i));
    EXPECT_NE(error.find(' ' + name + (i + 1 < kDeviceCallCount ? "," : ")")),
              std::string::npos)
        << name;
  }
}

TEST(FaultInjectorTest, RulesThatContradictThemselvesAreRefused) {
  FaultInjector injector(0, 1);
  FaultRule two;
  two.nth = 1;
  two.every = 1;
  EXPECT_THROW(injector.Add(two), std::invalid_argument);
  FaultRule unlikely;
  unlikely.probability = 1.5;
  EXPECT_THROW(injector.Add(unlikely), std::invalid_argument);
  EXPECT_EQ(Pattern(&injector, 2), "..");
}

}  // namespace
}  // namespace strata::sim
