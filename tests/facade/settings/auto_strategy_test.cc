#include "strata/facade/settings/auto_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A GPU of compute capability 9.0.
Caps Gpu() {
  Caps caps;
  caps.virtual_memory = true;
  caps.compute_major = 9;
  return caps;
}

Caps Simulated() {
  Caps caps;
  caps.virtual_memory = true;
  caps.simulated = true;
  return caps;
}

std::vector<MappedMemoryReport> ReportOn(int major, int minor) {
  return {{8, 6, "2026-01-01"}, {major, minor, "2026-02-02"}};
}

std::string Chosen(const std::string& options, const Caps& caps) {
  return ChooseStrategy(Options::Parse(options), caps, ReportOn(9, 0)).name;
}

TEST(AutoStrategyTest, SimulatedDeviceHasMappedMemory) {
  const StrategyChoice choice = ChooseStrategy(Options(), Simulated(), {});
  EXPECT_EQ(choice.name, "virtual_memory");
  EXPECT_EQ(choice.why, "the device is simulated");
}

TEST(AutoStrategyTest, GpuNeedsAReport) {
  const StrategyChoice choice =
      ChooseStrategy(Options(), Gpu(), ReportOn(9, 0));
  EXPECT_EQ(choice.name, "virtual_memory");
  EXPECT_THAT(choice.why, AllOf(StartsWith("docs/gpu/2026-02-02.md"),
                                HasSubstr("capability 9.0")));
}

TEST(AutoStrategyTest, GpuWithoutAReportHasChunks) {
  for (const auto& reports :
       {ReportOn(9, 1), ReportOn(8, 0), std::vector<MappedMemoryReport>()}) {
    const StrategyChoice choice = ChooseStrategy(Options(), Gpu(), reports);
    EXPECT_EQ(choice.name, "auto_growth");
    EXPECT_THAT(choice.why, AllOf(StartsWith("no report in docs/gpu"),
                                  HasSubstr("capability 9.0")));
  }
}

TEST(AutoStrategyTest, LegacyHandlesNeedChunks) {
  for (const Caps& caps : {Gpu(), Simulated()}) {
    EXPECT_EQ(Chosen("strata_ipc=posix", caps), "virtual_memory");
    EXPECT_EQ(Chosen("strata_ipc=legacy", caps), "auto_growth");
  }
}

TEST(AutoStrategyTest, ManagedMemoryNeedsChunks) {
  EXPECT_EQ(Chosen("use_cuda_managed_memory", Simulated()), "auto_growth");
}

TEST(AutoStrategyTest, DeviceWithoutVirtualMemoryHasChunks) {
  Caps caps = Simulated();
  caps.virtual_memory = false;
  EXPECT_EQ(Chosen("", caps), "auto_growth");
}

TEST(AutoStrategyTest, OtherStrategiesAreNotReplaced) {
  for (const char* name : {"auto_growth", "direct", "virtual_memory"}) {
    const Options options =
        Options::Parse(std::string("allocator_strategy=") + name);
    EXPECT_EQ(StrategyOn(options, Simulated(), PlaceKind::kDevice), name);
    EXPECT_EQ(StrategyOn(options, Simulated(), PlaceKind::kManaged), name);
  }
}

TEST(AutoStrategyTest, IsTheDefault) {
  EXPECT_EQ(Options().allocator_strategy, kAutoStrategy);
  EXPECT_EQ(StrategyOn(Options(), Simulated(), PlaceKind::kDevice),
            "virtual_memory");
  EXPECT_EQ(StrategyOn(Options(), Simulated(), PlaceKind::kManaged),
            "auto_growth");
}

TEST(AutoStrategyTest, OptionOfAutoGrowthChoosesIt) {
  for (const char* option :
       {"auto_growth_chunk_size_in_mb=8", "free_idle_chunk",
        "auto_growth_chunk_rule=exact", "auto_growth_give_back_limit=0"}) {
    SCOPED_TRACE(option);
    const StrategyChoice choice =
        ChooseStrategy(Options::Parse(option), Simulated());
    EXPECT_EQ(choice.name, "auto_growth");
    const std::string name =
        std::string(option).substr(0, std::string(option).find('='));
    EXPECT_EQ(choice.why, "--" + name + " is an option of auto_growth");
  }
  EXPECT_EQ(Chosen("auto_growth_chunk_rule=graded", Simulated()),
            "virtual_memory");
}

// True if the text of a report of tools/gpu_check shows everything that counts.
bool ShowsThatItWorks(const std::string& report) {
  return report.find("\n`virtual_memory` can be chosen here.\n") !=
         std::string::npos;
}

TEST(AutoStrategyTest, ReportSaysThatItWorksInALine) {
  EXPECT_TRUE(
      ShowsThatItWorks("one\n`virtual_memory` can be chosen here.\ntwo\n"));
  EXPECT_FALSE(
      ShowsThatItWorks("`virtual_memory` cannot be chosen here.\ntwo\n"));
}

TEST(AutoStrategyTest, EachRowHasItsReport) {
  for (const MappedMemoryReport& row : MappedMemoryReports()) {
    std::ifstream file(std::string(STRATA_SOURCE_DIR "/docs/gpu/") + row.date +
                       ".md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_TRUE(ShowsThatItWorks(text.str())) << row.date;
  }
}

TEST(AutoStrategyTest, UnknownStrategyAndWayAreNamed) {
  EXPECT_THAT(ParseError("allocator_strategy=best"),
              HasSubstr("(known: auto, auto_growth, "));
  EXPECT_THAT(ParseError("strata_ipc=cuda"),
              AllOf(StartsWith("strata_ipc"), HasSubstr("posix, legacy")));
}

TEST(AutoStrategyTest, LegacyHandlesContradictMemoryThatHasNone) {
  for (const char* name : {"virtual_memory", "cuda_malloc_async"}) {
    EXPECT_THAT(
        ParseError(std::string("strata_ipc=legacy allocator_strategy=") + name),
        HasSubstr(std::string("strata_ipc=legacy contradicts "
                              "allocator_strategy=") +
                  name));
  }
  EXPECT_EQ(Options::Parse("strata_ipc=legacy allocator_strategy=auto").ipc,
            "legacy");
}

// If the choice is auto_growth, a chunk may exceed the limit.
TEST(AutoStrategyTest, FirstChunksAreHeldToTheLimit) {
  EXPECT_THAT(ParseError("allocator_strategy=auto gpu_memory_limit_mb=8 "
                         "auto_growth_chunk_size_in_mb=9"),
              HasSubstr("contradicts gpu_memory_limit_mb=8"));
}

class AutoStrategyFacadeTest : public FacadeFixture {};

TEST_F(AutoStrategyFacadeTest, BuildsWhatIsChosen) {
  Build("allocator_strategy=auto");
  EXPECT_THAT(facade().Layers(kPlace), Contains("virtual_memory"));
  EXPECT_EQ(facade().options().Strategy(), "auto");
  Build("allocator_strategy=auto strata_ipc=legacy");
  EXPECT_THAT(facade().Layers(kPlace),
              AllOf(Contains("auto_growth"), Not(Contains("virtual_memory"))));
}

}  // namespace
}  // namespace strata
