// The facade of the process. Each test runs in a separate process, because its
// actions are possible only once per process.

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "strata/facade/allocator_facade.h"

namespace strata {
namespace {

void ExitWith(bool success) { std::exit(success ? 0 : 1); }

TEST(InstanceDeathTest, IsBuiltOnceFromTheDefaults) {
  EXPECT_EXIT(
      {
        AllocatorFacade& first = AllocatorFacade::Instance();
        ExitWith(&first == &AllocatorFacade::Instance() &&
                 ToString(first.options()) == ToString(Options()) &&
                 first.Alloc(HostPlace(), 100)->data() != nullptr);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InstanceDeathTest, IsWhatInitInstanceMade) {
  EXPECT_EXIT(
      {
        AllocatorFacade& made = AllocatorFacade::InitInstance(
            Options::Parse("strata_platform=sim,strata_sim_devices=3"));
        ExitWith(&made == &AllocatorFacade::Instance() &&
                 made.platform().device_count() == 3);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InstanceDeathTest, CannotBeMadeTwice) {
  EXPECT_EXIT(
      {
        AllocatorFacade::Instance();
        try {
          AllocatorFacade::InitInstance(Options());
        } catch (const std::logic_error&) {
          ExitWith(true);
        }
        ExitWith(false);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InstanceDeathTest, CanBeMadeAfterAnAttemptThatFailed) {
  EXPECT_EXIT(
      {
        Options wrong;
        wrong.platform.platform = "none";
        try {
          AllocatorFacade::InitInstance(wrong);
          ExitWith(false);
        } catch (const std::invalid_argument&) {
        }
        AllocatorFacade::InitInstance(Options::Parse("strata_platform=sim"));
        ExitWith(true);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strata
