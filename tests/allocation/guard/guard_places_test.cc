// Errors that the Guard layer finds, on every kind of place and during pending
//   work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include "strata/allocation/guard/guard_allocator.h"
#include "strata/tests/allocation/guard/guard_fixture.h"

namespace strata {
namespace {

using ::testing::Each;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = GuardError::Kind;

struct GuardCase {
  PlaceKind kind;
  const char* progress;
};

std::ostream& operator<<(std::ostream& out, const GuardCase& one) {
  const std::string place = ToString(Place{one.kind, 0});
  return out << place.substr(0, place.find(':')) << "_" << one.progress;
}

class GuardPlacesTest : public ::testing::TestWithParam<GuardCase> {
 protected:
  static GuardedOptions OptionsOf() {
    GuardedOptions options;
    options.kind = GetParam().kind;
    options.progress = GetParam().progress;
    return options;
  }
  Guarded on_{OptionsOf()};
};

TEST_P(GuardPlacesTest, ABlockThatIsUsedAsAskedPasses) {
  for (const std::size_t bytes : {1U, 255U, 256U, 1000U, 100'000U}) {
    const AllocationPtr block = on_.guard->Allocate(bytes);
    EXPECT_EQ(block->size(), bytes);
    on_.Write(AddressOf(block), 1);
    on_.Write(AddressOf(block) + bytes - 1, 1);
  }
  const MemoryCheck check = on_.guard->CheckAll();
  EXPECT_EQ(check.checked, 5U);
  EXPECT_EQ(check.skipped, 0U);
  on_.Flush();
  EXPECT_THAT(on_.errors, IsEmpty());
  EXPECT_EQ(on_.reporter->skipped(), 0U);
}

// The first and the last byte of each zone.
TEST_P(GuardPlacesTest, FindsOneByteOutsideABlockWhenItLeaves) {
  const auto zone = static_cast<std::ptrdiff_t>(on_.guard->red_zone_bytes());
  for (const std::ptrdiff_t offset :
       {-zone, std::ptrdiff_t{-1}, std::ptrdiff_t{1000}, 1000 + zone - 1}) {
    AllocationPtr block = on_.guard->Allocate(1000);
    const void* data = block->data();
    on_.Write(AddressOf(block) + static_cast<std::uintptr_t>(offset), 0x41);
    block.reset();
    on_.Flush();
    ASSERT_THAT(on_.errors, SizeIs(1)) << offset;
    const GuardError& error = on_.errors[0];
    EXPECT_EQ(error.kind, offset < 0 ? Kind::kUnderrun : Kind::kOverrun);
    EXPECT_EQ(error.data, data);
    EXPECT_EQ(error.bytes, 1000U);
    EXPECT_EQ(error.place, on_.guard->place());
    EXPECT_EQ(error.offset, offset);
    EXPECT_EQ(error.changed_bytes, 1U);
    EXPECT_EQ(error.found, 0x41);
    EXPECT_EQ(error.expected, offset < 0 ? 0xAB : 0xBA);
    on_.errors.clear();
  }
}

TEST_P(GuardPlacesTest, FindsBytesOutsideALiveBlockOnDemandOnce) {
  const AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block) + 1000, 0x41);
  on_.Write(AddressOf(block) + 1003, 0x42);
  EXPECT_EQ(on_.guard->CheckAll().errors, 1U);
  ASSERT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.errors[0].kind, Kind::kOverrun);
  EXPECT_EQ(on_.errors[0].offset, 1000);
  EXPECT_EQ(on_.errors[0].changed_bytes, 2U);
  EXPECT_EQ(on_.errors[0].freed_by, "");
  EXPECT_EQ(on_.guard->CheckAll().errors, 0U);
  on_.Write(AddressOf(block) - 1, 0x41);
  EXPECT_EQ(on_.guard->CheckAll().errors, 1U);
  EXPECT_EQ(on_.errors[1].kind, Kind::kUnderrun);
}

TEST_P(GuardPlacesTest, FindsAWriteAfterTheFree) {
  AllocationPtr block = on_.guard->Allocate(100'000);
  const std::uintptr_t address = AddressOf(block);
  block.reset();
  on_.Write(address + 70'000, 0x41);
  on_.Flush();
  ASSERT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.errors[0].kind, Kind::kUseAfterFree);
  EXPECT_EQ(on_.errors[0].offset, 70'000);
  EXPECT_EQ(on_.errors[0].found, 0x41);
  EXPECT_EQ(on_.errors[0].expected, 0xDD);
}

TEST_P(GuardPlacesTest, ChecksTheQuarantineOnDemand) {
  AllocationPtr block = on_.guard->Allocate(1000);
  const std::uintptr_t address = AddressOf(block);
  block.reset();
  EXPECT_EQ(on_.guard->CheckAll().checked, 1U);
  on_.Write(address, 0x41);
  EXPECT_EQ(on_.guard->CheckAll().errors, 1U);
  EXPECT_THAT(on_.errors, SizeIs(1));
}

TEST_P(GuardPlacesTest, FillsNewAndFreedBlocks) {
  AllocationPtr block = on_.guard->Allocate(1000);
  const std::uintptr_t address = AddressOf(block);
  EXPECT_THAT(on_.Read(address, 1000), Each(Eq(0xCD)));
  block.reset();
  EXPECT_THAT(on_.Read(address, 1000), Each(Eq(0xDD)));
}

// paddle.md §5 B10, §6.10: never a wait for the whole device.
TEST_P(GuardPlacesTest, NeverWaitsForTheDevice) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.guard->CheckAll();
  block.reset();
  on_.Flush();
  EXPECT_EQ(on_.device().CallCount(DeviceCall::kSynchronize), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    All, GuardPlacesTest,
    ::testing::Values(GuardCase{PlaceKind::kDevice, "inline"},
                      GuardCase{PlaceKind::kDevice, "lazy"},
                      GuardCase{PlaceKind::kDevice, "manual"},
                      GuardCase{PlaceKind::kManaged, "inline"},
                      GuardCase{PlaceKind::kManaged, "lazy"},
                      GuardCase{PlaceKind::kPinned, "inline"},
                      GuardCase{PlaceKind::kHost, "inline"}),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace strata
