#include "strata/tensor/ref_counted.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace strata {
namespace {

class Counted final : public RefCounted {
 public:
  explicit Counted(int& gone) : gone_(gone) {}

 private:
  ~Counted() override { ++gone_; }
  int& gone_;
};

// tf_bfc §2: RefCounted.

TEST(RefCountedTest, StartsAtOne) {
  int gone = 0;
  auto* object = new Counted(gone);
  EXPECT_EQ(object->references(), 1U);
  EXPECT_TRUE(object->IsSoleReference());
  EXPECT_TRUE(object->Unref());
  EXPECT_EQ(gone, 1);
}

TEST(RefCountedTest, OnlyTheLastUnrefDeletes) {
  int gone = 0;
  auto* object = new Counted(gone);
  object->Ref();
  object->Ref();
  EXPECT_EQ(object->references(), 3U);
  EXPECT_FALSE(object->Unref());
  EXPECT_FALSE(object->Unref());
  EXPECT_EQ(gone, 0);
  EXPECT_TRUE(object->Unref());
  EXPECT_EQ(gone, 1);
}

TEST(RefCountedTest, ThreadsDeleteItOnce) {
  int gone = 0;
  constexpr int kThreads = 4;
  auto* object = new Counted(gone);
  for (int i = 1; i < kThreads; ++i) object->Ref();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([object] {
      for (int round = 0; round < 1000; ++round) {
        object->Ref();
        object->Unref();
      }
      object->Unref();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gone, 1);
}

TEST(RefPtrTest, CountsCopiesAndNotMoves) {
  int gone = 0;
  RefPtr<Counted> first(new Counted(gone));
  RefPtr<Counted> second = first;
  EXPECT_EQ(first->references(), 2U);
  RefPtr<Counted> third = std::move(second);
  EXPECT_EQ(first->references(), 2U);
  EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move)
  first = third;
  EXPECT_EQ(third->references(), 2U);
  first = RefPtr<Counted>();
  third = RefPtr<Counted>();
  EXPECT_EQ(gone, 1);
}

TEST(RefPtrTest, AssigningItToItselfKeepsIt) {
  int gone = 0;
  RefPtr<Counted> pointer(new Counted(gone));
  const RefPtr<Counted>& same = pointer;
  pointer = same;
  EXPECT_EQ(pointer->references(), 1U);
  EXPECT_EQ(gone, 0);
}

TEST(RefPtrTest, ShareAddsAReferenceToWhatSomebodyElseOwns) {
  int gone = 0;
  auto* object = new Counted(gone);
  {
    const auto shared = RefPtr<Counted>::Share(object);
    EXPECT_EQ(object->references(), 2U);
  }
  EXPECT_FALSE(RefPtr<Counted>::Share(nullptr));
  EXPECT_TRUE(object->Unref());
}

}  // namespace
}  // namespace strata
