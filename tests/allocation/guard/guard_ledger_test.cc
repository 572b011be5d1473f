#include "strata/allocation/guard/guard_ledger.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

class GuardLedgerTest : public testing::Test {
 protected:
  GuardRecord& AddLive() {
    GuardRecord* record = ledger_.Take();
    EXPECT_NE(record, nullptr);
    record->bytes = 100;
    ledger_.AddLive(record);
    return *record;
  }

  GuardLedger ledger_;
};

TEST_F(GuardLedgerTest, AWalkMeetsAllButWhatWasDropped) {
  GuardRecord& oldest = AddLive();
  GuardRecord& dropped = AddLive();
  GuardRecord& newest = AddLive();
  EXPECT_TRUE(ledger_.BeginFree(dropped));
  ledger_.BeginDrop(dropped);
  ledger_.EndDrop(dropped);
  GuardRecord* record = ledger_.PinNewest();
  EXPECT_EQ(record, &newest);
  record = ledger_.PinOlder(record);
  EXPECT_EQ(record, &oldest);
  EXPECT_EQ(ledger_.PinOlder(record), nullptr);
  EXPECT_EQ(ledger_.Take(), &dropped);
}

// The memory below is already freed, but the check reads the record.
TEST_F(GuardLedgerTest, ADroppedBlockStaysForItsCheck) {
  GuardRecord& older = AddLive();
  GuardRecord& dropped = AddLive();
  EXPECT_EQ(ledger_.PinNewest(), &dropped);
  EXPECT_TRUE(ledger_.BeginFree(dropped));
  ledger_.BeginDrop(dropped);
  ledger_.EndDrop(dropped);
  EXPECT_EQ(ledger_.StateOf(dropped), GuardRecord::State::kDropped);
  EXPECT_NE(dropped.block, nullptr);
  EXPECT_FALSE(ledger_.BeginFree(dropped)) << "it was freed";
  EXPECT_EQ(ledger_.PinOlder(&dropped), &older);
  EXPECT_EQ(dropped.block, nullptr);
  EXPECT_EQ(ledger_.PinOlder(&older), nullptr);
  EXPECT_EQ(ledger_.PinNewest(), &older);
  EXPECT_EQ(ledger_.PinOlder(&older), nullptr);
}

}  // namespace
}  // namespace strata
