#include "strata/facade/options.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string RefusalOf(const std::string& text) {
  return TextOf<std::invalid_argument>([&] { Options::Parse(text); });
}

std::shared_ptr<Allocator> MakeUnchanged(std::shared_ptr<Allocator> below,
                                         const DecoratorSettings& /*settings*/,
                                         const ChainContext& /*context*/) {
  return below;
}

STRATA_REGISTER_DECORATOR("unchanged", Above("stat"), &MakeUnchanged,
                          {"warn", "Bool", "false", "It has no effect."});

// A value that is valid for the option and differs from its default.
std::string OtherValue(const OptionInfo& option) {
  const std::string name = option.name;
  const std::string type = option.type;
  if (name == "allocator_strategy") return "direct";
  if (name == "strata_platform") return "sim";
  if (name == "auto_growth_chunk_rule") return "exact";
  if (name == "bfc_placement") return "fast";
  if (name == "bfc_lower_end" || name == "bfc_upper_end") return "descending";
  if (name == "bfc_backpedal") return "once";
  if (name == "cuda_malloc_async_pool") return "default";
  if (name == "cuda_malloc_async_bins") return "pow2";
  if (name == "bfc_memory_fraction") return "0.5-0.75";
  if (name.starts_with("strata_") && name.ends_with("_strategy")) return "pool";
  if (name == "pool_rounder") return "pow2";
  if (name == "strata_guard_fill") return "nan";
  if (name == "strata_stream_lock") return "word";
  if (name == "strata_ipc") return "legacy";
  if (name == "strata_vmm_remap") return "lazy";
  if (name.starts_with("strata_vmm_") && type == "Bytes") return "8388608";
  if (name == "strata_guard_on_error") return "log";
  if (name == "strata_fault") return "nth=3";
  if (name == "strata_decorators") return "unchanged:warn=true";
  if (name == "strata_front_cache") return "speed";
  if (name == "strata_sim_fault") return "mem_alloc:nth=3";
  if (type == "String") return "some text; with, 'separators'";
  if (type == "Bool") return option.default_value == "true" ? "false" : "true";
  if (type == "Double") return "0.2";
  return "17";
}

class OptionTest : public testing::TestWithParam<OptionInfo> {};

TEST_P(OptionTest, HasTheDefaultThatItsTableNames) {
  Options options;
  options.Set(GetParam().name, OtherValue(GetParam()));
  options.Set(GetParam().name, GetParam().default_value);
  EXPECT_EQ(ToString(options), ToString(Options()));
}

TEST_P(OptionTest, IsSetByNameAndShown) {
  Options options;
  options.Set(GetParam().name, OtherValue(GetParam()));
  EXPECT_NE(ToString(options), ToString(Options()));
}

TEST_P(OptionTest, SurvivesTheRoundTrip) {
  Options options;
  options.Set(GetParam().name, OtherValue(GetParam()));
  EXPECT_EQ(ToString(Options::Parse(ToString(options))), ToString(options));
}

TEST_P(OptionTest, HasHelp) {
  EXPECT_GT(std::string(GetParam().help).size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(All, OptionTest, testing::ValuesIn(OptionTable()),
                         [](const testing::TestParamInfo<OptionInfo>& row) {
                           return std::string(row.param.name);
                         });

// 0xEF under its own name.
TEST(OptionsTest, InitAllocatedMemFillsWith0xef) {
  EXPECT_EQ(Options().FillByte(), std::nullopt);
  EXPECT_EQ(Options::Parse("init_allocated_mem").FillByte(), 0xEF);
  EXPECT_EQ(Options::Parse("alloc_fill_value=5").FillByte(), 5);
  EXPECT_EQ(
      Options::Parse("init_allocated_mem,alloc_fill_value=239").FillByte(),
      0xEF);
  EXPECT_THAT(
      RefusalOf("init_allocated_mem,alloc_fill_value=5"),
      AllOf(HasSubstr("init_allocated_mem"), HasSubstr("alloc_fill_value")));
}

TEST(OptionsTest, RefusesAChunkAboveTheLimit) {
  for (const std::string strategy : {"naive_best_fit", "thread_local"}) {
    for (const std::string option :
         {"initial_gpu_memory_in_mb", "reallocate_gpu_memory_in_mb"}) {
      const std::string text =
          "gpu_memory_limit_mb=10,allocator_strategy=" + strategy + "," +
          option + "=";
      EXPECT_THAT(RefusalOf(text + "11"),
                  AllOf(HasSubstr(option), HasSubstr("gpu_memory_limit_mb")));
      EXPECT_EQ(Options::Parse(text + "10").gpu_memory_limit_mb, 10U);
    }
  }
  for (const std::string option :
       {"auto_growth_chunk_size_in_mb",
        "small_pool_auto_growth_chunk_size_in_mb",
        "large_pool_auto_growth_chunk_size_in_mb", "small_pool_pre_alloc_in_mb",
        "large_pool_pre_alloc_in_mb"}) {
    EXPECT_THAT(RefusalOf("gpu_memory_limit_mb=10," + option + "=11"),
                AllOf(HasSubstr(option), HasSubstr("gpu_memory_limit_mb")));
    Options::Parse("gpu_memory_limit_mb=10," + option + "=10");
  }
  const std::string preallocate =
      "gpu_memory_limit_mb=10,allocator_strategy=cuda_malloc_async,"
      "cuda_malloc_async_preallocate=";
  EXPECT_THAT(RefusalOf(preallocate + "10485761"),
              HasSubstr("cuda_malloc_async_preallocate"));
  Options::Parse(preallocate + "10MiB");
  // The other strategies allocate no such chunk.
  EXPECT_EQ(Options::Parse("gpu_memory_limit_mb=10,initial_gpu_memory_in_mb=11")
                .gpu_memory_limit_mb,
            10U);
}

TEST(OptionsTest, RefusesFaultsThatWouldNotHappen) {
  EXPECT_THAT(
      RefusalOf("strata_fault=nth=1,allocator_strategy=cuda_malloc_async"),
      AllOf(HasSubstr("strata_fault"), HasSubstr("cuda_malloc_async")));
}

TEST(OptionsTest, RefusesFractionsThatAreNone) {
  for (const std::string option :
       {"fraction_of_gpu_memory_to_use", "fraction_of_cpu_memory_to_use",
        "fraction_of_cuda_pinned_memory_to_use"}) {
    EXPECT_THAT(RefusalOf(option + "=0"), HasSubstr(option));
    EXPECT_THAT(RefusalOf(option + "=1.5"), HasSubstr(option));
  }
}

// Also if no place uses the strategy.
TEST(OptionsTest, RefusesVirtualMemoryOutOfBounds) {
  for (const std::string strategy : {"auto_growth", "virtual_memory", "auto"}) {
    const auto refusal = [&](const std::string& option) {
      return RefusalOf("allocator_strategy=" + strategy + "," + option);
    };
    EXPECT_EQ(refusal("strata_vmm_reserve=1000"),
              "strata_vmm_reserve: 1000 bytes are not between 6.0 MiB and "
              "128.0 TiB");
    EXPECT_EQ(refusal("strata_vmm_handle_max=65MiB"),
              "strata_vmm_handle_max: 68157440 bytes are not between 2.0 MiB "
              "and 64.0 MiB");
    for (const std::string option :
         {"strata_vmm_reserve=6291455", "strata_vmm_reserve=129TiB",
          "strata_vmm_handle_max=2097151", "strata_vmm_remap=often"}) {
      EXPECT_THAT(refusal(option),
                  HasSubstr(option.substr(0, option.find('='))));
    }
    Options::Parse("allocator_strategy=" + strategy +
                   ",strata_vmm_reserve=6MiB,strata_vmm_handle_max=2MiB");
    Options::Parse("allocator_strategy=" + strategy +
                   ",strata_vmm_reserve=128TiB,strata_vmm_handle_max=64MiB");
  }
}

TEST(OptionsTest, NamesTheOptionWhoseValueIsWrong) {
  for (const OptionInfo& option : OptionTable()) {
    if (std::string(option.type) == "String") continue;  // takes any text
    for (const std::string wrong : {"x1", "1x", "--1"}) {
      EXPECT_THAT(TextOf<std::invalid_argument>(
                      [&] { Options().Set(option.name, wrong); }),
                  AllOf(HasSubstr(option.name), HasSubstr(wrong)));
    }
  }
}

TEST(OptionsTest, TakesCommasSemicolonsSpacesAndDashes) {
  const Options options = Options::Parse(
      " --allocator_strategy=direct,gpu_memory_limit_mb=5; "
      "-strata_exact_peak ");
  EXPECT_EQ(options.allocator_strategy, "direct");
  EXPECT_EQ(options.gpu_memory_limit_mb, 5U);
  EXPECT_TRUE(options.decorators.exact_peak);
}

TEST(OptionsTest, OnlyABoolStandsAloneAndNoValueIsNone) {
  EXPECT_TRUE(Options::Parse("strata_exact_peak").decorators.exact_peak);
  for (const std::string text :
       {"strata_exact_peak=", "strata_exact_peak='',strata_stat",
        "strata_sim_devices", "strata_sim_devices="}) {
    EXPECT_THAT(RefusalOf(text), HasSubstr(text.substr(0, 10)));
    EXPECT_THAT(RefusalOf(text), HasSubstr(": ''"));
  }
}

TEST(OptionsTest, WhatFollowsAQuoteIsSeparated) {
  for (const std::string text :
       {"allocator_strategy='bfc'strata_guard=1", "allocator_strategy='bfc'x",
        "--allocator_strategy='bfc'=1"}) {
    EXPECT_THAT(RefusalOf(text),
                HasSubstr("allocator_strategy: a separator has to follow"));
  }
  const Options options =
      Options::Parse("allocator_strategy='bfc';strata_trace_file='a''b'");
  EXPECT_EQ(options.allocator_strategy, "bfc");
  EXPECT_EQ(options.decorators.trace_path, "a'b");
}

TEST(OptionsTest, RefusesANameThatIsSetTwice) {
  EXPECT_EQ(RefusalOf("strata_platform=sim,strata_stat,-strata_platform=cuda"),
            "option 'strata_platform' is set twice");
  EXPECT_EQ(RefusalOf("strata_stat=1;strata_stat=1"),
            "option 'strata_stat' is set twice");
}

TEST(OptionsTest, AnEmptyTextGivesTheDefaults) {
  EXPECT_EQ(ToString(Options::Parse("")), ToString(Options()));
}

TEST(OptionsTest, ReadsSizesWithUnits) {
  EXPECT_EQ(
      Options::Parse("strata_sim_memory=1.5GiB").platform.sim_memory_bytes,
      std::uint64_t{1536} << 20);
}

TEST(OptionsTest, QuotesHoldSeparatorsAndDoubledQuotes) {
  EXPECT_EQ(Options::Parse("strata_trace_file='a, b;''c''',strata_stat=0")
                .decorators.trace_path,
            "a, b;'c'");
}

TEST(OptionsTest, NamesTheOptionWhoseQuoteIsNotClosed) {
  EXPECT_THAT(RefusalOf("strata_trace_file='a"),
              HasSubstr("strata_trace_file"));
}

TEST(OptionsTest, ListsTheKnownOptionsForAnUnknownOne) {
  EXPECT_THAT(RefusalOf("no_such=1"),
              AllOf(HasSubstr("no_such"), HasSubstr("allocator_strategy")));
}

TEST(OptionsTest, ListsTheKnownStrategiesForAnUnknownOne) {
  EXPECT_THAT(RefusalOf("allocator_strategy=none"),
              AllOf(HasSubstr("none"), HasSubstr("auto_growth")));
}

TEST(OptionsTest, NamesBothOptionsThatContradictEachOther) {
  EXPECT_THAT(RefusalOf("use_system_allocator,allocator_strategy=auto_growth"),
              AllOf(HasSubstr("use_system_allocator"),
                    HasSubstr("allocator_strategy")));
}

TEST(OptionsTest, AWaitThatIsOffContradictsWaitingAlone) {
  EXPECT_THAT(RefusalOf("strata_retry_alone,gpu_allocator_retry_time=0"),
              AllOf(HasSubstr("strata_retry_alone"),
                    HasSubstr("gpu_allocator_retry_time")));
}

TEST(OptionsTest, AnExactPeakContradictsNoCounts) {
  EXPECT_THAT(RefusalOf("strata_exact_peak,strata_stat=false"),
              AllOf(HasSubstr("strata_exact_peak"), HasSubstr("strata_stat")));
}

TEST(OptionsTest, AFillContradictsNoFill) {
  EXPECT_THAT(
      RefusalOf("strata_guard_fill=nan,strata_guard_poison=false"),
      AllOf(HasSubstr("strata_guard_fill"), HasSubstr("strata_guard_poison")));
}

TEST(OptionsTest, NamesBothOptionsThatWouldWriteOneFile) {
  for (const char* other : {"strata_trace_file", "strata_trace_events_file"}) {
    const std::string text =
        std::string("strata_allocation_log_file=a,").append(other) + "=a";
    EXPECT_THAT(RefusalOf(text), AllOf(HasSubstr("strata_allocation_log_file"),
                                       HasSubstr(other)));
  }
  EXPECT_THAT(RefusalOf("strata_trace_file=a,strata_trace_events_file=a"),
              AllOf(HasSubstr("strata_trace_file"),
                    HasSubstr("strata_trace_events_file"), HasSubstr("'a'")));
  // Another name of the file.
  EXPECT_THAT(
      RefusalOf("strata_trace_file=a,strata_device_trace_file=./x/../a"),
      HasSubstr("strata_trace_file contradicts"));
  // Opening a device does not truncate it.
  Options::Parse(
      "strata_trace_file=/dev/null,"
      "strata_trace_events_file=/dev/null");
}

TEST(OptionsTest, NamesBothOptionsOfHostMemoryThatContradictEachOther) {
  EXPECT_THAT(RefusalOf("use_system_allocator,strata_host_strategy=pool"),
              AllOf(HasSubstr("use_system_allocator"),
                    HasSubstr("strata_host_strategy")));
  EXPECT_THAT(RefusalOf("use_system_allocator,strata_pinned_strategy=pool"),
              AllOf(HasSubstr("use_system_allocator"),
                    HasSubstr("strata_pinned_strategy")));
  EXPECT_THAT(
      RefusalOf("use_system_allocator,use_auto_growth_pinned_allocator"),
      AllOf(HasSubstr("use_system_allocator"),
            HasSubstr("use_auto_growth_pinned_allocator")));
  EXPECT_THAT(RefusalOf("use_auto_growth_pinned_allocator,"
                        "strata_pinned_strategy=pool"),
              AllOf(HasSubstr("use_auto_growth_pinned_allocator"),
                    HasSubstr("strata_pinned_strategy")));
}

TEST(OptionsTest, ListsTheKnownStrategiesForHostMemoryToo) {
  for (const char* name : {"strata_host_strategy", "strata_pinned_strategy"}) {
    EXPECT_THAT(RefusalOf(std::string(name) + "=none"),
                AllOf(HasSubstr(name), HasSubstr("auto_growth")));
  }
}

TEST(OptionsTest, AnAliasMayRepeatWhatTheOptionSays) {
  const Options options =
      Options::Parse("use_system_allocator,allocator_strategy=direct");
  EXPECT_EQ(options.Strategy(), "direct");
}

TEST(OptionsTest, AnAliasAloneChoosesTheStrategy) {
  EXPECT_EQ(Options::Parse("use_system_allocator=1").Strategy(), "direct");
}

TEST(OptionsTest, NamesOptionsThatAreOutOfRange) {
  EXPECT_THAT(RefusalOf("alloc_fill_value=256"), HasSubstr("alloc_fill_value"));
  EXPECT_THAT(RefusalOf("alloc_fill_value=-2"), HasSubstr("alloc_fill_value"));
  EXPECT_THAT(RefusalOf("strata_sim_devices=9999999999"),
              HasSubstr("strata_sim_devices"));
  EXPECT_THAT(RefusalOf("bfc_placement=odd"), HasSubstr("bfc_placement"));
  EXPECT_THAT(RefusalOf("strata_front_cache=odd"),
              HasSubstr("strata_front_cache"));
  EXPECT_THAT(RefusalOf("auto_growth_chunk_rule=odd"),
              HasSubstr("auto_growth_chunk_rule"));
  EXPECT_THAT(RefusalOf("strata_stream_lock=odd"),
              HasSubstr("strata_stream_lock: unknown lock 'odd'"));
  EXPECT_THAT(RefusalOf("strata_guard_fill=odd"),
              HasSubstr("strata_guard_fill"));
  EXPECT_THAT(RefusalOf("strata_guard_on_error=odd"),
              HasSubstr("strata_guard_on_error"));
  EXPECT_THAT(RefusalOf("strata_guard_red_zone=17MiB"),
              HasSubstr("strata_guard_red_zone"));
  for (const char* name :
       {"strata_host_warn_large", "strata_host_warn_total"}) {
    for (const char* wrong : {"-0.1", "1.1", "nan"}) {
      EXPECT_THAT(RefusalOf(std::string(name) + "=" + wrong), HasSubstr(name));
    }
  }
  EXPECT_THAT(RefusalOf("pool_rounder=odd"), HasSubstr("pool_rounder"));
  EXPECT_THAT(RefusalOf("auto_growth_give_back_limit=-1"),
              HasSubstr("auto_growth_give_back_limit"));
  EXPECT_THAT(RefusalOf("auto_growth_give_back_limit=nan"),
              HasSubstr("auto_growth_give_back_limit"));
  for (const char* wrong : {"=-0.1", "=nan"}) {
    const std::string name = "cuda_malloc_async_pool_memory_throttle_ratio";
    EXPECT_THAT(RefusalOf(name + wrong), HasSubstr(name));
  }
  EXPECT_THAT(RefusalOf("cuda_malloc_async_pool=mine"),
              AllOf(HasSubstr("cuda_malloc_async_pool"), HasSubstr("mine"),
                    HasSubstr("default")));
  EXPECT_THAT(RefusalOf("cuda_malloc_async_bins=pow3"),
              AllOf(HasSubstr("cuda_malloc_async_bins"), HasSubstr("pow3"),
                    HasSubstr("pow2")));
  for (const char* nothing_kept :
       {"strata_front_cache=off", "free_idle_chunk"}) {
    EXPECT_THAT(
        RefusalOf(std::string("cuda_malloc_async_bins=pow2,") + nothing_kept),
        AllOf(HasSubstr("cuda_malloc_async_bins"), HasSubstr(nothing_kept)));
  }
  for (const char* name :
       {"gpu_memory_limit_mb", "auto_growth_chunk_size_in_mb",
        "small_pool_size_in_mb", "small_pool_auto_growth_chunk_size_in_mb",
        "large_pool_auto_growth_chunk_size_in_mb", "small_pool_pre_alloc_in_mb",
        "initial_gpu_memory_in_mb", "reallocate_gpu_memory_in_mb",
        "initial_cpu_memory_in_mb", "large_pool_pre_alloc_in_mb"}) {
    EXPECT_THAT(RefusalOf(std::string(name) + "=18446744073709551615"),
                HasSubstr(name));
  }
}

// tf_bfc R59, R61; strategy/bfc/limits.h has the rules.
TEST(OptionsTest, ChecksTheLimitsOfBfc) {
  EXPECT_THAT(RefusalOf("bfc_memory_fraction=most"),
              AllOf(HasSubstr("bfc_memory_fraction"), HasSubstr("'most'")));
  EXPECT_THAT(RefusalOf("bfc_memory_fraction=0.5,bfc_system_memory_in_mb=9"),
              AllOf(HasSubstr("bfc_memory_fraction"),
                    HasSubstr("bfc_system_memory_in_mb")));
  EXPECT_THAT(RefusalOf("bfc_system_memory_in_mb=18446744073709551615"),
              HasSubstr("bfc_system_memory_in_mb"));
}

TEST(OptionsTest, ChecksTheFaultPlan) {
  EXPECT_THAT(RefusalOf("strata_fault=sometimes"), HasSubstr("sometimes"));
}

TEST(OptionsTest, ChecksTheRegisteredDecorators) {
  EXPECT_THAT(RefusalOf("strata_decorators=unchanged:warn=perhaps"),
              HasSubstr("strata_decorators: unchanged: warn: 'perhaps'"));
}

TEST(OptionsTest, NumbersKeepEveryDigit) {
  Options options;
  options.strategy.auto_growth_give_back_limit = 0.1234567890123;
  EXPECT_EQ(
      Options::Parse(ToString(options)).strategy.auto_growth_give_back_limit,
      0.1234567890123);
}

class WarningCounter final : public google::LogSink {
 public:
  WarningCounter() { google::AddLogSink(this); }
  WarningCounter(const WarningCounter&) = delete;
  WarningCounter& operator=(const WarningCounter&) = delete;
  ~WarningCounter() override { google::RemoveLogSink(this); }

  void send(google::LogSeverity severity, const char* /*full_filename*/,
            const char* /*base_filename*/, int /*line*/,
            const struct ::tm* /*time*/, const char* /*message*/,
            std::size_t /*message_len*/) override {
    if (severity == google::GLOG_WARNING) ++warnings;
  }

  int warnings = 0;
};

// In a separate process, because each process logs the warning once. The exit
// code is the number of warnings.
TEST(OptionsDeathTest, ARemovedOptionSetsNothingAndIsWarnedOfOnce) {
  for (const RemovedOption& option : RemovedOptions()) {
    const std::string name = option.name;
    EXPECT_EXIT(
        {
          const WarningCounter counter;
          for (const std::string text :
               {name + "=false", name, "--" + name + "=1"}) {
            if (ToString(Options::Parse(text)) != ToString(Options())) {
              std::_Exit(100);
            }
          }
          std::_Exit(counter.warnings);
        },
        testing::ExitedWithCode(1), name + " has no effect any more");
  }
}

TEST(OptionsTest, NoRemovedOptionIsStillOne) {
  for (const RemovedOption& removed : RemovedOptions()) {
    for (const OptionInfo& option : OptionTable()) {
      EXPECT_STRNE(removed.name, option.name);
    }
  }
}

}  // namespace
}  // namespace strata
