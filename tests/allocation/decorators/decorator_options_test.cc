#include "strata/allocation/decorators/decorator_options.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/platform/host/processor.h"

namespace strata {
namespace {

bool MayBias(const char* lock) {
  DecoratorOptions options;
  options.stream_lock = lock;
  return options.biased_lock();
}

TEST(StreamLockTest, IsWhatItIsCalledWhereThreadsCanOwnLocks) {
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  EXPECT_TRUE(MayBias("biased"));
  EXPECT_FALSE(MayBias("word"));
  EXPECT_EQ(MayBias("auto"), IsFasterWithOwnedLocks());
  EXPECT_EQ(MayBias("auto"), DecoratorOptions().biased_lock());
  EXPECT_THROW(MayBias("odd"), std::invalid_argument);
}

// Makes the system refuse membarrier(2) to this process from now on, like a
// sandbox. Returns false if that is not possible.
bool RefuseMembarrier() {
  const auto load = static_cast<unsigned short>(BPF_LD | BPF_W | BPF_ABS);
  const auto jump = static_cast<unsigned short>(BPF_JMP | BPF_JEQ | BPF_K);
  const auto end = static_cast<unsigned short>(BPF_RET | BPF_K);
  std::array<sock_filter, 4> steps = {{
      {load, 0, 0, offsetof(seccomp_data, nr)},
      {jump, 0, 1, SYS_membarrier},
      {end, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
      {end, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog program = {steps.size(), steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kNotToBeHad = 77;

// Runs in a separate process, because the first use of membarrier must come
// later.
[[noreturn]] void AskWithoutMembarrier(const char* lock) {
  if (!RefuseMembarrier()) std::exit(kNotToBeHad);
  const bool may_bias = MayBias(lock) || MayBias(lock);
  std::fputs(may_bias ? "biased\n" : "word\n", stderr);
  std::exit(0);
}

bool CanRefuse(int status) {
  return testing::ExitedWithCode(0)(status) ||
         testing::ExitedWithCode(kNotToBeHad)(status);
}

TEST(StreamLockDeathTest, IsOneOfWordsWithoutMembarrierWhichIsToldOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AskWithoutMembarrier("biased"), CanRefuse,
              "^((WARNING: Logging before[^\n]*\n)?"
              "W[^\n]*no membarrier for this process[^\n]*\nword\n)?$");
}

TEST(StreamLockDeathTest, WhoDidNotAskForAnotherIsToldNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AskWithoutMembarrier("auto"), CanRefuse, "^(word\n)?$");
  EXPECT_EXIT(AskWithoutMembarrier("word"), CanRefuse, "^(word\n)?$");
}

}  // namespace
}  // namespace strata
