#include "strata/tools/replay/block_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Adds a block that must be refused, and expects `reason`.
void ExpectRefused(BlockChecker& checker, CheckedBlock bad, std::size_t bytes,
                   const char* reason) {
  EXPECT_THAT([&] { checker.Allocated(bad, bytes); },
              ThrowsMessage<std::runtime_error>(HasSubstr(reason)));
}

TEST(BlockCheckerTest, AcceptsNeighboursAndReuse) {
  BlockChecker checker;
  const CheckedBlock low{0x1000, 0x1000};
  checker.Allocated({0x2000, 0x1000}, 0x1000);
  checker.Allocated(low, 0x800);
  checker.Allocated({0x3000, 0x100}, 1);
  checker.Freeing(low);
  checker.Allocated({0x1000, 0x200}, 0x200);
  EXPECT_NO_THROW(checker.Allocated({0x1200, 0xe00}, 0xe00));
}

TEST(BlockCheckerTest, RefusesOverlapFromBelowAboveAndInside) {
  for (const CheckedBlock& bad :
       {CheckedBlock{0x1f00, 0x200}, CheckedBlock{0x2f00, 0x200},
        CheckedBlock{0x2000, 0x100}}) {
    BlockChecker checker;
    checker.Allocated({0x2000, 0x1000}, 0x1000);
    ExpectRefused(checker, bad, 1, "overlaps");
  }
}

TEST(BlockCheckerTest, RefusesABlockThatIsTooSmall) {
  BlockChecker checker;
  ExpectRefused(checker, {0x1000, 0x100}, 0x101, "smaller");
}

TEST(BlockCheckerTest, RefusesAWrongAlignment) {
  BlockChecker checker;
  ExpectRefused(checker, {0x1080, 0x100}, 1, "aligned");
}

TEST(BlockCheckerTest, NoBytesAreAtNullAndOthersAreNot) {
  BlockChecker checker;
  checker.Allocated({0, 0}, 0);
  checker.Allocated({0, 0}, 0);
  ExpectRefused(checker, {0, 0x100}, 1, "null");
  ExpectRefused(checker, {0x1000, 0x100}, 0, "0 bytes");
}

TEST(BlockCheckerTest, RefusesAFreeOfABlockThatChanged) {
  BlockChecker checker;
  checker.Allocated({0x1000, 0x100}, 1);
  EXPECT_THAT(
      [&] {
        checker.Freeing({0x1000, 0x200});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("handed out")));
}

TEST(BlockCheckerTest, RefusesASecondFree) {
  BlockChecker checker;
  checker.Allocated({0x1000, 0x100}, 1);
  checker.Freeing({0x1000, 0x100});
  EXPECT_THROW(checker.Freeing({0x1000, 0x100}), std::runtime_error);
}

}  // namespace
}  // namespace strata::tools
