#include "strata/allocation/decorators/registered/decorator_factories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A layer with a name of its own, and a count that its place shares.
class Named final : public Decorator {
 public:
  struct Count {
    std::atomic<int> requests{0};
  };

  Named(std::shared_ptr<Allocator> below, std::string name,
        std::shared_ptr<Count> count)
      : Decorator(std::move(below)),
        count(std::move(count)),
        name_(std::move(name)) {}

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    ++count->requests;
    return Decorator::TryAllocate(request, failure);
  }
  const char* name() const override { return name_.c_str(); }

  const std::shared_ptr<Count> count;

 private:
  const std::string name_;
};

std::shared_ptr<Allocator> MakeNamed(std::shared_ptr<Allocator> below,
                                     const DecoratorSettings& settings,
                                     const ChainContext& context) {
  return std::make_shared<Named>(
      std::move(below), settings.Get<std::string>("label"),
      context.Shared<Named::Count>(ServiceScope::kPlace));
}

DecoratorFactory Factory(const std::string& name, DecoratorPosition position) {
  DecoratorFactory factory;
  factory.name = name;
  factory.position = std::move(position);
  factory.make = &MakeNamed;
  factory.options = {{"label", "String", name, "Name of the layer."}};
  factory.file = "some_file.cc";
  factory.line = 7;
  return factory;
}

std::string Refusal(const DecoratorFactory& factory,
                    const std::string& first = "") {
  DecoratorFactories factories({"stat", "fault"});
  try {
    if (!first.empty()) factories.Register(Factory(first, Above("stat")));
    factories.Register(factory);
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(factories.All().size(), first.empty() ? 0U : 1U);
    return error.what();
  }
  return "not refused";
}

TEST(DecoratorFactoriesTest, RefusesALayerThatDoesNotExist) {
  EXPECT_THAT(Refusal(Factory("a", Below("status"))),
              AllOf(HasSubstr("'a' (some_file.cc:7) is below status"),
                    HasSubstr("known: stat, fault, strategy")));
  EXPECT_THAT(Refusal(Factory("a", Below("strategy"))),
              HasSubstr("cannot be below the strategy"));
  EXPECT_EQ(Refusal(Factory("a", Above("strategy"))), "not refused");
}

TEST(DecoratorFactoriesTest, RefusesANameThatIsNotUnique) {
  EXPECT_THAT(Refusal(Factory("a", Above("stat")), "a"),
              HasSubstr("is registered already: decorator 'a' (some_file"));
  EXPECT_THAT(Refusal(Factory("fault", Above("stat"))),
              HasSubstr("has the name of a layer"));
  EXPECT_THAT(Refusal(Factory("", Above("stat"))), HasSubstr("has no name"));
}

TEST(DecoratorFactoriesTest, RefusesAMissingFunctionAndAWrongOption) {
  DecoratorFactory factory = Factory("a", Above("stat"));
  factory.options = {{"most", "Int", "1", ""}};
  EXPECT_THAT(Refusal(factory), HasSubstr("most: '1' is not a value of type"));
  factory.options = {{"most", "Uint64", "-1", ""}};
  EXPECT_THAT(Refusal(factory), HasSubstr("most: '-1' is not a value of type"));
  factory.options = {{"the most", "Uint64", "1", ""}};
  EXPECT_THAT(Refusal(factory), HasSubstr("'the most' cannot be a flag"));
  factory.options.clear();
  factory.make = nullptr;
  EXPECT_THAT(Refusal(factory), HasSubstr("no function"));
}

std::string SelectionError(const std::string& text) {
  DecoratorFactories factories({"stat"});
  factories.Register(Factory("a", Above("stat")));
  factories.Register(Factory("b", Above("stat")));
  try {
    factories.Select(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "not refused";
}

TEST(DecoratorFactoriesTest, ASelectionNamesItsMistake) {
  EXPECT_EQ(SelectionError("a:label=x,b"), "not refused");
  EXPECT_EQ(SelectionError("a,c"),
            "strata_decorators: unknown decorator 'c' (known: a, b)");
  EXPECT_EQ(SelectionError("a,b,a"),
            "strata_decorators: 'a' is selected twice");
  EXPECT_EQ(SelectionError("b:size=1"),
            "strata_decorators: b: unknown option 'size' (known: label)");
  EXPECT_EQ(SelectionError("b:label=x:label=y"),
            "strata_decorators: b: 'label' is set twice");
}

class RegisteredDecoratorTest : public ::testing::Test {
 protected:
  // The layers above the pool, outermost first.
  static std::vector<std::string> LayersOf(const Allocator& outermost) {
    std::vector<std::string> names;
    for (const Allocator* layer = &outermost;
         std::string(layer->name()) != "chunk_pool";
         layer = layer->underlying()) {
      names.emplace_back(layer->name());
    }
    return names;
  }
  std::shared_ptr<Allocator> Chain(const std::string& registered) {
    DecoratorOptions options = NoDecorators();
    options.stat = options.aligned = true;
    options.registered = registered;
    return Decorate(place_.pool(), options, context_);
  }

  PoolPlace place_;
  ChainContext context_;
};

TEST_F(RegisteredDecoratorTest, StandsAtItsPositionIfItIsSelected) {
  const DecoratorRegistrar d(Factory("d", Above("strategy")));
  const DecoratorRegistrar c(Factory("c", Below("stat")));
  const DecoratorRegistrar b(Factory("b", Below("stat")));
  const DecoratorRegistrar a(Factory("a", Above("stat")));
  // The options do not select `limit`.
  const DecoratorRegistrar e(Factory("e", Below("limit")));
  EXPECT_THAT(LayersOf(*Chain("e,d,c,b,a")),
              ElementsAre("a", "stat", "b", "c", "e", "aligned", "d"));
  EXPECT_THAT(LayersOf(*Chain("c")), ElementsAre("stat", "c", "aligned"));
  EXPECT_THAT(LayersOf(*Chain("")), ElementsAre("stat", "aligned"));
  EXPECT_THAT(DecoratorNames(),
              ElementsAre("trace", "events", "log", "guard", "observe", "a",
                          "stat", "b", "c", "limit", "e", "retry", "cuda_graph",
                          "stream_safe", "aligned", "d", "fault"));
}

TEST_F(RegisteredDecoratorTest, CanStandBelowThePool) {
  const DecoratorRegistrar a(Factory("a", Above("fault")));
  DecoratorOptions options = NoDecorators();
  options.registered = "a";
  EXPECT_STREQ(DecorateSystem(place_.system(), options, context_)->name(), "a");
  EXPECT_EQ(Decorate(place_.pool(), options, context_), place_.pool());
}

TEST_F(RegisteredDecoratorTest, HasOptionsOfItsOwn) {
  const DecoratorRegistrar a(Factory("a", Above("stat")));
  EXPECT_THAT(LayersOf(*Chain("a:label=other")),
              ElementsAre("other", "stat", "aligned"));
}

const Named::Count* SharedCount(const Allocator& layer) {
  return dynamic_cast<const Named&>(layer).count.get();
}

TEST_F(RegisteredDecoratorTest, SharesStateWithTheChainsOfItsPlace) {
  const DecoratorRegistrar a(Factory("a", Above("stat")));
  context_.place_services = std::make_shared<SharedServices>();
  const auto one = Chain("a");
  const auto other = Chain("a");
  EXPECT_EQ(SharedCount(*one), SharedCount(*other));
  context_.place_services = std::make_shared<SharedServices>();
  EXPECT_NE(SharedCount(*one), SharedCount(*Chain("a")));
}

TEST_F(RegisteredDecoratorTest, IsUnknownAfterItsLibraryIsGone) {
  { const DecoratorRegistrar a(Factory("a", Above("stat"))); }
  EXPECT_THAT(DecoratorFactories::Instance().All(), IsEmpty());
  EXPECT_THROW(Chain("a"), std::invalid_argument);
}

std::shared_ptr<Allocator> MakeNothing(std::shared_ptr<Allocator> /*below*/,
                                       const DecoratorSettings& /*settings*/,
                                       const ChainContext& /*context*/) {
  return nullptr;
}

TEST_F(RegisteredDecoratorTest, AFunctionThatMakesNothingIsAnError) {
  DecoratorFactory factory = Factory("a", Above("stat"));
  factory.make = &MakeNothing;
  const DecoratorRegistrar a(factory);
  EXPECT_THROW(Chain("a"), std::invalid_argument);
}

TEST(RegisteredDecoratorDeathTest, AMistakeEndsTheProcessWithItsPlace) {
  EXPECT_DEATH(DecoratorRegistrar(Factory("a", Above("nothing"))),
               "some_file.cc:7\\) is above nothing");
}

}  // namespace
}  // namespace strata
