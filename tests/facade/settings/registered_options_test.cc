// Options of strategies and decorators that the program registers.

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
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

std::uint64_t g_unit = 0;
std::string g_label;

std::shared_ptr<Allocator> MakeWithUnit(std::shared_ptr<ChunkPool> pool,
                                        std::shared_ptr<ChainStream> stream,
                                        const StrategyOptions& options) {
  g_unit = options.own.Get<std::uint64_t>("unit");
  return std::make_shared<WithUnit>(
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
      DecoratorFactory{"late",
                       Above("stat"),
                       &MakeLabelled,
                       {{"label", "String", "", "Help."}},
                       "some_file.cc",
                       1});
  const gflags::FlagSaver saver;
  ParseCommandLine({"--late_label=d"});
  EXPECT_THAT(ToString(OptionsFromFlags()), HasSubstr("late_label=d"));
}

TEST_F(RegisteredOptionsTest, ANameHasOneMeaning) {
  const DecoratorRegistrar other(
      DecoratorFactory{"bfc",
                       Above("stat"),
                       &MakeLabelled,
                       {{"allow_growth", "Bool", "true", "Help."}},
                       "some_file.cc",
                       1});
  EXPECT_EQ(TextOf<std::invalid_argument>([] { OptionTable(); }),
            "decorator 'bfc': its option 'allow_growth' cannot be the flag "
            "--bfc_allow_growth: there is such a flag");
}

TEST_F(RegisteredOptionsTest, ANameIsAWord) {
  const DecoratorRegistrar other(
      DecoratorFactory{"a-b",
                       Above("stat"),
                       &MakeLabelled,
                       {{"label", "String", "", "Help."}},
                       "some_file.cc",
                       1});
  EXPECT_THAT(TextOf<std::invalid_argument>([] { OptionTable(); }),
              HasSubstr("cannot be the flag --a-b_label: not a name"));
}

}  // namespace
}  // namespace strata
