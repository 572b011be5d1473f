// The code of BiasedLock in every order of its accesses to memory.

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "strata/tests/testing/models/lock_model.h"

namespace strata {
namespace {

using Do = LockModel::Do;
using Program = LockModel::Program;

Program Sections(int times) { return LockModel::Sections(0, times); }
Program SectionOfOther() { return LockModel::Sections(1, 1); }
Program TrySection() { return {{Do::kTryLock}, {Do::kCount}, {Do::kUnlock}}; }
// Both locks at once; `outer` is locked first, and unlocked first or last.
Program Nested(std::size_t outer, bool last) {
  const std::size_t inner = 1 - outer;
  return {{Do::kLock, outer},  {Do::kLock, inner},
          {Do::kCount, outer}, {Do::kUnlock, last ? inner : outer},
          {Do::kCount, inner}, {Do::kUnlock, last ? outer : inner}};
}
const Program kEnd = {{Do::kEnd}};

struct Programs {
  std::string name;
  std::vector<Program> threads;
  // True if a thread enters as the owner and owners are removed such that each
  // of the faults breaks the lock.
  bool finds_faults = true;
};

std::ostream& operator<<(std::ostream& out, const Programs& programs) {
  return out << programs.name;
}

using Case = std::tuple<Programs, LockModel::Memory>;

class BiasedLockModelTest : public testing::TestWithParam<Case> {
 protected:
  static LockModel::Result Explore(
      LockModel::Fault fault = LockModel::Fault::kNone) {
    const auto& [programs, memory] = GetParam();
    return LockModel::Explore(programs.threads, memory, fault);
  }
};

TEST_P(BiasedLockModelTest, ExcludesAndLosesNothingAndEnds) {
  const LockModel::Result result = Explore();
  EXPECT_EQ(result.error, "");
  EXPECT_GT(result.states, 1000U);
  EXPECT_TRUE(result.removed);
  EXPECT_TRUE(result.entered);
  EXPECT_TRUE(result.undone);
}

// Each part of the algorithm is needed, and the model detects its absence.
TEST_P(BiasedLockModelTest, FindsWhatIsLeftOut) {
  EXPECT_NE(Explore(LockModel::Fault::kBarrier).error, "");
  EXPECT_NE(Explore(LockModel::Fault::kSecondLook).error, "");
  EXPECT_NE(Explore(LockModel::Fault::kWait).error, "");
}

const Programs kPrograms[] = {
    {"two_threads", {Sections(3), Sections(3)}},
    {"three_threads", {Sections(2), Sections(2), Sections(1)}},
    {"try_lock", {Sections(2) + TrySection(), TrySection() + Sections(2)}},
    {"nested",
     {Nested(0, /*last=*/true) + Sections(1),
      Nested(0, /*last=*/false) + Sections(1)}},
    {"ends",
     {Sections(2) + kEnd + SectionOfOther() + Sections(1), Sections(2)}},
    {"tries_between",
     {Sections(2) + TrySection() + Sections(1),
      Sections(1) + TrySection() + Sections(1)}},
};

INSTANTIATE_TEST_SUITE_P(
    All, BiasedLockModelTest,
    testing::Combine(testing::ValuesIn(kPrograms),
                     testing::Values(LockModel::Memory::kTso,
                                     LockModel::Memory::kWeak)),
    [](const testing::TestParamInfo<Case>& test) {
      std::string name = std::get<0>(test.param).name;
      name.append(std::get<1>(test.param) == LockModel::Memory::kTso ? "_tso"
                                                                     : "_weak");
      return name;
    });

// The events that the cases above should cover occur.
TEST(BiasedLockModelEventsTest, OwnersComeAgainAndSlotsGoOn) {
  const auto tso = LockModel::Memory::kTso;
  EXPECT_TRUE(
      LockModel::Explore({Sections(3), Sections(3)}, tso).entered_again);
  EXPECT_FALSE(LockModel::Explore({Sections(3), Sections(1)}, tso).gave_up);
  const LockModel::Result ends = LockModel::Explore(kPrograms[4].threads, tso);
  EXPECT_TRUE(ends.inherited);
  const LockModel::Result tries = LockModel::Explore(kPrograms[2].threads, tso);
  EXPECT_TRUE(tries.try_failed);
  EXPECT_TRUE(tries.tried_owner);
  EXPECT_FALSE(tries.inherited);
  EXPECT_TRUE(LockModel::Explore(kPrograms[5].threads, tso).tried_word);
}

// Afterwards they still exclude each other, in every way of locking.
TEST(BiasedLockModelEventsTest, ThreadsThatTakeTurnsComeToHaveAPlainLock) {
  for (const Program& last : {Sections(1), TrySection()}) {
    const Program program = Sections(2) + last + Sections(1);
    for (const auto memory :
         {LockModel::Memory::kTso, LockModel::Memory::kWeak}) {
      const LockModel::Result result =
          LockModel::Explore({program, program}, memory);
      EXPECT_EQ(result.error, "");
      EXPECT_TRUE(result.gave_up);
      EXPECT_TRUE(result.entered_again);
    }
  }
}

// The model detects that no thread can continue.
TEST(BiasedLockModelEventsTest, FindsDeadlock) {
  const Program one = {
      {Do::kLock, 0}, {Do::kLock, 1}, {Do::kUnlock, 1}, {Do::kUnlock, 0}};
  const Program other = {
      {Do::kLock, 1}, {Do::kLock, 0}, {Do::kUnlock, 0}, {Do::kUnlock, 1}};
  const auto tso = LockModel::Memory::kTso;
  EXPECT_EQ(LockModel::Explore({one, other}, tso).error, "nobody can go on");
  EXPECT_EQ(LockModel::Explore({one, one}, tso).error, "");
}

// An owner that locks twice waits for itself, as with a spin lock.
TEST(BiasedLockModelEventsTest, FindsRecursion) {
  const Program twice = {
      {Do::kLock}, {Do::kLock}, {Do::kUnlock}, {Do::kUnlock}};
  const auto tso = LockModel::Memory::kTso;
  EXPECT_EQ(LockModel::Explore({Sections(1) + twice}, tso).error,
            "nobody can go on");
}

}  // namespace
}  // namespace strata
