// Options of strategies and decorators that the program registers.

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/facade/flags.h"
#include "strata/strategy/factory_registry.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/scoped_variable.h"

namespace strata {
namespace {

using testing::HasSubstr;

class WithUnit final : public Decorator {
 public:
  using Decorator::Decorator;
  const char* name() const override { return "with_unit"; }
};

class WithCheck final : public Decorator {
 public:
  using Decorator::Decorator;
  const char* name() const override { return "with_check"; }
};

std::uint64_t g_unit = 0;
std::string g_label;

std::shared_ptr<Allocator> MakeWithUnit(std::shared_ptr<ChunkPool> pool,
                                        std::shared_ptr<ChainStream> stream,
                                        const StrategyOptions& options) {
  g_unit = options.registered.Get<std::uint64_t>("unit");
  return std::make_shared<WithUnit>(
      MakeDirectAllocator(std::move(pool), std::move(stream), options));
}

std::shared_ptr<Allocator> MakeWithCheck(std::shared_ptr<ChunkPool> pool,
                                         std::shared_ptr<ChainStream> stream,
                                         const StrategyOptions& options) {
  return std::make_shared<WithCheck>(
      MakeDirectAllocator(std::move(pool), std::move(stream), options));
}

std::shared_ptr<Allocator> MakeLabelled(std::shared_ptr<Allocator> below,
                                        const DecoratorSettings& settings,
                                        const ChainContext& /*context*/) {
  g_label = settings.Get<std::string>("label");
  return below;
}

STRATA_REGISTER_STRATEGY("with_unit", 100, &MakeWithUnit,
                         {"unit", "Bytes", "1KiB", "Unit of all sizes."},
                         {"ratio", "Double", "0.5", "It has no effect."});
STRATA_REGISTER_DECORATOR("labelled", Above("stat"), &MakeLabelled,
                          {"label", "String", "none", "It has no effect."});

// The unit has to be even, and at most the limit.
void CheckUnit(const StrategyOptions& options, std::uint64_t limit_mb) {
  const auto unit = options.registered.Get<std::uint64_t>("unit");
  if (unit % 2 != 0) throw std::invalid_argument("the unit is odd");
  if (limit_mb != 0 && unit > limit_mb << 20) {
    throw std::invalid_argument("the unit is above the limit");
  }
}

const StrategyRegistrar kWithCheck(StrategyFactory{
    .name = "with_check",
    .priority = 100,
    .make = &MakeWithCheck,
    .file = __FILE__,
    .line = __LINE__,
    .check = &CheckUnit,
    .options = {{"unit", "Bytes", "1KiB", "An even size."}}});

// A decorator that a library may register.
DecoratorFactory Loaded(const std::string& name,
                        const RegisteredOption& option) {
  return {name, Above("stat"), &MakeLabelled, {option}, "some_file.cc", 1};
}

class RegisteredOptionsTest : public FacadeFixture {
 protected:
  void BuildWith(const std::string& options) {
    Build("allocator_strategy=with_unit" + options);
  }

  static std::string RefusalOf(const std::string& text) {
    return TextOf<std::invalid_argument>([&] { Options::Parse(text); });
  }
};

TEST_F(RegisteredOptionsTest, AStrategyReceivesItsDefaults) {
  BuildWith("");
  EXPECT_EQ(g_unit, 1024U);
}

TEST_F(RegisteredOptionsTest, AStrategyReceivesItsValues) {
  BuildWith(",with_unit_unit=64KiB");
  EXPECT_EQ(g_unit, 65536U);
}

TEST_F(RegisteredOptionsTest, ADecoratorReceivesItsValues) {
  BuildWith(",strata_decorators=labelled");
  EXPECT_EQ(g_label, "none");
  BuildWith(",strata_decorators=labelled,labelled_label=a");
  EXPECT_EQ(g_label, "a");
}

TEST_F(RegisteredOptionsTest, TheSelectionOfADecoratorHasPrecedence) {
  BuildWith(",labelled_label=a,strata_decorators='labelled:label=b'");
  EXPECT_EQ(g_label, "b");
}

TEST_F(RegisteredOptionsTest, AWrongValueIsNamed) {
  EXPECT_EQ(RefusalOf("with_unit_unit=some"),
            "with_unit_unit: 'some' is not a value of type Bytes");
  EXPECT_THAT(RefusalOf("with_unit_units=1"),
              HasSubstr("unknown option 'with_unit_units'"));
  EXPECT_THAT(RefusalOf("with_unit_units=1"), HasSubstr(", with_unit_unit,"));
}

TEST_F(RegisteredOptionsTest, FlagsAndEnvironmentSetThem) {
  RegisterFlags();
  const gflags::FlagSaver saver;
  const ScopedVariable ratio("FLAGS_with_unit_ratio", "0.25");
  ParseCommandLine({"--with_unit_unit=2MiB", "--labelled_label=c"});
  const std::string text = ToString(OptionsFromFlags());
  EXPECT_THAT(text, HasSubstr("with_unit_unit=2MiB,with_unit_ratio=0.25"));
  EXPECT_THAT(text, HasSubstr("labelled_label=c"));
}

TEST_F(RegisteredOptionsTest, ALaterRegistrationIsAFlagToo) {
  RegisterFlags();
  const DecoratorRegistrar late(
      Loaded("late", {"label", "String", "", "Help."}));
  const gflags::FlagSaver saver;
  ParseCommandLine({"--late_label=d"});
  EXPECT_THAT(ToString(OptionsFromFlags()), HasSubstr("late_label=d"));
}

TEST_F(RegisteredOptionsTest, ANameHasOneMeaning) {
  const DecoratorRegistrar other(
      Loaded("bfc", {"allow_growth", "Bool", "true", "Help."}));
  EXPECT_EQ(TextOf<std::invalid_argument>([] { OptionTable(); }),
            "decorator 'bfc': its option 'allow_growth' cannot be the flag "
            "--bfc_allow_growth: there is such a flag");
}

// A removed option is a flag, too, and gflags ends the process at a second
// definition.
TEST_F(RegisteredOptionsTest, ARemovedOptionKeepsItsName) {
  const DecoratorRegistrar other(
      Loaded("auto_growth", {"step_plan", "Bool", "true", "Help."}));
  EXPECT_THAT(TextOf<std::invalid_argument>([] { OptionTable(); }),
              HasSubstr("--auto_growth_step_plan: there is such a flag"));
}

TEST_F(RegisteredOptionsTest, ALibraryThatIsLoadedAgainMayHaveOtherDefaults) {
  RegisterFlags();
  const gflags::FlagSaver saver;
  {
    const DecoratorRegistrar first(
        Loaded("reloaded", {"label", "String", "old", "Help."}));
    EXPECT_THAT(ToString(OptionsFromFlags()), HasSubstr("reloaded_label=old"));
  }
  const DecoratorRegistrar second(
      Loaded("reloaded", {"label", "String", "new", "Help."}));
  EXPECT_THAT(ToString(OptionsFromFlags()), HasSubstr("reloaded_label=new"));
  ParseCommandLine({"--reloaded_label=mine"});
  EXPECT_THAT(ToString(OptionsFromFlags()), HasSubstr("reloaded_label=mine"));
}

TEST_F(RegisteredOptionsTest, ALibraryMayBeLoadedWhileFlagsAreRead) {
  std::atomic<bool> is_over{false};
  std::deque<DecoratorRegistrar> loaded;
  std::thread loader([&] {
    for (int i = 0; i < 300; ++i) {
      loaded.emplace_back(Loaded("loaded" + std::to_string(i),
                                 {"label", "String", "", "Help."}));
    }
    is_over = true;
  });
  while (!is_over) EXPECT_NO_THROW(OptionsFromFlags());
  loader.join();
}

TEST_F(RegisteredOptionsTest, TheCheckOfASelectedStrategySeesItsOptions) {
  const std::string selected = "allocator_strategy=with_check,";
  EXPECT_EQ(RefusalOf(selected + "with_check_unit=3"), "the unit is odd");
  EXPECT_EQ(RefusalOf(selected + "gpu_memory_limit_mb=1,with_check_unit=2MiB"),
            "the unit is above the limit");
  EXPECT_EQ(RefusalOf("strata_host_strategy=with_check,with_check_unit=3"),
            "the unit is odd");
  EXPECT_NO_THROW(Options::Parse(selected + "gpu_memory_limit_mb=1"));
  EXPECT_NO_THROW(Options::Parse("with_check_unit=3"));
}

}  // namespace
}  // namespace strata
