#include "strata/strategy/factory_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A strategy from outside the tree.
class Registered final : public Decorator {
 public:
  using Decorator::Decorator;
  const char* name() const override { return "registered"; }
};

std::shared_ptr<Allocator> MakeRegistered(std::shared_ptr<ChunkPool> pool,
                                          std::shared_ptr<ChainStream> stream,
                                          const StrategyOptions& options) {
  return std::make_shared<Registered>(
      MakeAutoGrowthAllocator(std::move(pool), std::move(stream), options));
}
class SharedOne final : public Decorator {
 public:
  using Decorator::Decorator;
  const char* name() const override { return "shared_one"; }
};

std::shared_ptr<Allocator> MakeSharedOne(std::shared_ptr<ChunkPool> pool,
                                         std::shared_ptr<ChainStream> stream,
                                         const StrategyOptions& options) {
  return std::make_shared<SharedOne>(
      MakeAutoGrowthAllocator(std::move(pool), std::move(stream), options));
}
std::shared_ptr<Allocator> MakeNothing(std::shared_ptr<ChunkPool> /*pool*/,
                                       std::shared_ptr<ChainStream> /*stream*/,
                                       const StrategyOptions& /*options*/) {
  return nullptr;
}

STRATA_REGISTER_STRATEGY("registered", 100, &MakeRegistered);
// One instance for all streams of a place.
STRATA_REGISTER_SHARED_STRATEGY("shared_one", 100, &MakeSharedOne);
// Ignored: its priority is lower.
STRATA_REGISTER_STRATEGY("registered", 99, &MakeNothing);

StrategyFactory Factory(const std::string& name, int priority, int line) {
  StrategyFactory factory;
  factory.name = name;
  factory.priority = priority;
  factory.make = &MakeRegistered;
  factory.file = "some_file.cc";
  factory.line = line;
  return factory;
}

template <class Exception>
std::string Refusal(StrategyFactories& factories,
                    const StrategyFactory& factory) {
  try {
    factories.Register(factory);
  } catch (const Exception& error) {
    return error.what();
  }
  return "not refused";
}

// tf_bfc §2: AllocatorFactoryRegistry.

TEST(StrategyFactoriesTest, TheHighestPriorityWinsInAnyOrder) {
  StrategyFactories factories;
  factories.Register(Factory("a", 100, 1));
  factories.Register(Factory("a", 200, 2));
  factories.Register(Factory("a", 150, 3));
  factories.Register(Factory("b", 300, 4));
  EXPECT_EQ(factories.Find("a")->line, 2);
  EXPECT_EQ(factories.Find("b")->line, 4);
  EXPECT_FALSE(factories.Find("c").has_value());
}

TEST(StrategyFactoriesTest, NamesComeOnceInTheOrderTheyAppeared) {
  StrategyFactories factories;
  factories.Register(Factory("b", 1, 1));
  factories.Register(Factory("a", 1, 2));
  factories.Register(Factory("b", 2, 3));
  EXPECT_THAT(factories.Names(), ElementsAre("b", "a"));
}

TEST(StrategyFactoriesTest, RefusesWhatIsNoFactory) {
  StrategyFactories factories;
  EXPECT_THAT(Refusal<std::invalid_argument>(factories, Factory("", 100, 11)),
              AllOf(HasSubstr("no name"), HasSubstr("some_file.cc:11")));
  EXPECT_THAT(Refusal<std::invalid_argument>(factories, Factory("a", -1, 12)),
              AllOf(HasSubstr("negative priority"), HasSubstr(":12")));
  StrategyFactory empty = Factory("a", 1, 13);
  empty.make = nullptr;
  EXPECT_THAT(Refusal<std::invalid_argument>(factories, empty),
              HasSubstr("no function"));
  StrategyFactory wrong = Factory("a", 1, 14);
  wrong.options = {{"unit", "Bytes", "some", "Help."}};
  EXPECT_THAT(Refusal<std::invalid_argument>(factories, wrong),
              AllOf(HasSubstr("some_file.cc:14"),
                    HasSubstr("unit: 'some' is not a value of type Bytes")));
  EXPECT_TRUE(factories.Names().empty());
}

TEST(StrategyFactoriesTest, RefusesAnOptionWhoseFlagIsNoWordOrNotUnique) {
  StrategyFactories factories;
  const auto refusal = [&](const std::string& strategy,
                           const std::vector<std::string>& options) {
    StrategyFactory wrong = Factory(strategy, 1, 15);
    for (const std::string& option : options) {
      wrong.options.push_back({option, "Bytes", "1", "Help."});
    }
    return Refusal<std::invalid_argument>(factories, wrong);
  };
  EXPECT_THAT(refusal("a", {""}), AllOf(HasSubstr("strategy 'a'"),
                                        HasSubstr("option: '' is no name")));
  EXPECT_THAT(refusal("a", {"-"}),
              HasSubstr("'-' cannot be a flag: the name is not a word"));
  EXPECT_THAT(refusal("a-b", {"unit"}), HasSubstr("'unit' cannot be a flag"));
  EXPECT_THAT(refusal("a", {"unit", "unit"}),
              HasSubstr("'unit' is there twice"));
  EXPECT_TRUE(factories.Names().empty());
}

TEST(StrategyFactoriesTest, ADuplicateNamesBothPlaces) {
  StrategyFactories factories;
  factories.Register(Factory("a", 100, 21));
  EXPECT_THAT(Refusal<std::invalid_argument>(factories, Factory("a", 100, 22)),
              AllOf(HasSubstr("'a'"), HasSubstr("some_file.cc:21"),
                    HasSubstr("some_file.cc:22")));
  EXPECT_EQ(factories.Find("a")->line, 21);
}

TEST(StrategyFactoriesTest, NothingIsRegisteredAfterTheFirstUse) {
  StrategyFactories factories;
  factories.Register(Factory("a", 100, 31));
  factories.Names();  // calling it is too late
  factories.Register(Factory("b", 100, 32));
  factories.Find("unknown");
  EXPECT_THAT(Refusal<std::logic_error>(factories, Factory("c", 100, 33)),
              AllOf(HasSubstr("after"), HasSubstr("some_file.cc:33")));
  EXPECT_THAT(factories.Names(), ElementsAre("a", "b"));
}

// As when the library that contains the string `file` is unloaded.
TEST(StrategyFactoriesTest, WhatIsUnregisteredIsUnknown) {
  StrategyFactories factories;
  factories.Register(Factory("a", 100, 41));
  factories.Register(Factory("a", 200, 42));
  factories.Register(Factory("b", 100, 43));
  EXPECT_EQ(factories.Find("a")->line, 42);
  factories.Unregister("some_file.cc", 42);
  factories.Unregister("other_file.cc", 41);
  EXPECT_EQ(factories.Find("a")->line, 41);
  factories.Unregister("some_file.cc", 43);
  EXPECT_FALSE(factories.Find("b").has_value());
}

TEST(StrategyFactoriesTest, BuiltInStrategiesHavePriority100) {
  EXPECT_EQ(StrategyFactories::Instance().Find("direct")->priority,
            kBuiltInStrategyPriority);
  EXPECT_THAT(StrategyFactories::Instance().Find("direct")->file,
              HasSubstr("strategy/direct/strategy.def"));
}

TEST(StrategyRegistrarTest, MakesANameThatAChainCanBeBuiltWith) {
  EXPECT_THAT(StrategyNames(), Contains("registered"));
  TestPlaceOptions options;
  options.strategy = "registered";
  TestPlace place(options);
  const TestChain chain = place.AddChain();
  EXPECT_STREQ(chain->name(), "registered");
  EXPECT_NE(chain->Allocate(1000), nullptr);
}

TEST(StrategyRegistrarDeathTest, AMistakeEndsTheProcessWithItsPlace) {
  EXPECT_DEATH(StrategyRegistrar(Factory("", 1, 41)), "some_file.cc:41");
}

// As for a library that is loaded too late.
TEST(StrategyRegistrarTest, OneThatIsTooLateIsUnknown) {
  StrategyFactories::Instance().Find("direct");
  ::testing::internal::CaptureStderr();
  {
    const StrategyRegistrar late(Factory("late", 1, 42));
    EXPECT_THAT(StrategyNames(), Not(Contains("late")));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("some_file.cc:42) is registered after"));
  EXPECT_THAT(StrategyNames(), Contains("registered"));
}

// The front of a chain holds the lock of the chain around the hit path, so a
// hit path with another lock would be used without its own.
TEST(RegisteredStrategyTest, AHitPathHasTheLockOfItsChain) {
  for (const char* const name : {"registered", "shared_one"}) {
    for (const PlaceKind kind : {PlaceKind::kHost, PlaceKind::kDevice}) {
      TestPlaceOptions options;
      options.kind = kind;
      options.strategy = name;
      TestPlace place(options);
      const TestChain chain = place.AddChain();
      HitPath* const path = chain.strategy->hit_path();
      ASSERT_NE(path, nullptr) << name;
      EXPECT_EQ(path->hit_lock(), &chain.chain_stream->state().lock) << name;
    }
  }
}

}  // namespace
}  // namespace strata
