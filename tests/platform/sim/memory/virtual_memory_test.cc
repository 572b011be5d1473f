// The page table of the simulated devices compared with a model of single
// pages.

#include "strata/platform/sim/memory/virtual_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "strata/platform/sim/bytes/host_views.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/memory/physical_memory.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

constexpr std::uint64_t kFrames = 24;
constexpr int kDevices = 2;

// The devices' memory and the page table over it.
struct Memories {
  Memories() {
    for (DeviceMemory& device : devices) physical.AddDevice(&device);
  }

  HostViews views;
  std::array<DeviceMemory, kDevices> devices{
      DeviceMemory(0, kFrames* kFrameBytes),
      DeviceMemory(1, kFrames* kFrameBytes)};
  PhysicalMemory physical{false};
  VirtualMemory virtuals{&physical, &views};
};

// The expected page table, page by page.
class NaivePages {
 public:
  struct Handle {
    int device;
    std::uint64_t frames;
    int references;
  };
  struct Page {
    std::uint64_t handle;
    std::uint64_t frame;    // of the handle
    std::uint64_t mapping;  // equal for pages mapped together
    std::array<Access, kDevices> rights{};
  };

  bool InReservation(DevicePtr ptr, std::uint64_t frames) const {
    for (const auto& [begin, count] : reservations) {
      if (ptr >= begin &&
          ptr + frames * kFrameBytes <= begin + count * kFrameBytes) {
        return true;
      }
    }
    return false;
  }

  bool AnyMapped(DevicePtr ptr, std::uint64_t frames) const {
    for (std::uint64_t i = 0; i < frames; ++i) {
      if (pages.count(ptr + i * kFrameBytes) != 0) return true;
    }
    return false;
  }

  // True if the range lies in one reservation and cuts no mapping at its ends.
  bool CutsNothing(DevicePtr ptr, std::uint64_t frames) const {
    return frames != 0 && InReservation(ptr, frames) &&
           !SameMapping(ptr - kFrameBytes, ptr) &&
           !SameMapping(ptr + (frames - 1) * kFrameBytes,
                        ptr + frames * kFrameBytes);
  }
  // Likewise, and fully mapped.
  bool Whole(DevicePtr ptr, std::uint64_t frames) const {
    for (std::uint64_t i = 0; i < frames; ++i) {
      if (pages.count(ptr + i * kFrameBytes) == 0) return false;
    }
    return CutsNothing(ptr, frames);
  }

  bool IsMapped(std::uint64_t handle) const {
    for (const auto& [ptr, page] : pages) {
      if (page.handle == handle) return true;
    }
    return false;
  }

  std::uint64_t UsedFrames(int device) const {
    std::uint64_t used = 0;
    for (const auto& [value, handle] : handles) {
      const bool there = handle.references > 0 || IsMapped(value);
      if (there && handle.device == device) used += handle.frames;
    }
    return used;
  }

  std::map<DevicePtr, std::uint64_t> reservations;  // frames
  std::map<std::uint64_t, Handle> handles;  // by value; all ever created
  std::map<DevicePtr, Page> pages;
  std::uint64_t last_mapping = 0;

 private:
  bool SameMapping(DevicePtr a, DevicePtr b) const {
    const auto left = pages.find(a);
    const auto right = pages.find(b);
    return left != pages.end() && right != pages.end() &&
           left->second.mapping == right->second.mapping;
  }
};

// Makes random calls on both, which must agree on each.
class RandomUse {
 public:
  explicit RandomUse(std::uint64_t seed) : random_(seed) {}

  void Step() {
    switch (random_() % 10) {
      case 0:
        return Reserve();
      case 1:
        return FreeReservation();
      case 2:
        return Create();
      case 3:
        return Release();
      case 4:
      case 5:
        return Map();
      case 6:
        return Unmap();
      case 7:
      case 8:
        return SetAccess();
      default:
        return Retain();
    }
  }

  void Check() {
    for (int device = 0; device < kDevices; ++device) {
      ASSERT_EQ(
          memories_.devices[static_cast<std::size_t>(device)].free_bytes(),
          (kFrames - naive_.UsedFrames(device)) * kFrameBytes);
    }
    // Frames of live memory are distinct, and a handle keeps its frames.
    std::set<std::pair<int, std::uint64_t>> seen;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> where;
    for (const auto& [ptr, page] : naive_.pages) {
      const auto place = memories_.virtuals.Locate(ptr + 5);
      ASSERT_TRUE(place);
      ASSERT_EQ(place->device, naive_.handles.at(page.handle).device);
      ASSERT_EQ(place->run.offset % kFrameBytes, 5u);
      const std::uint64_t frame = place->run.offset / kFrameBytes;
      const auto known =
          where.emplace(std::pair(page.handle, page.frame), frame);
      ASSERT_EQ(known.first->second, frame);
      if (known.second) {
        ASSERT_TRUE(seen.emplace(place->device, frame).second);
      }
      CheckRights(ptr, page);
    }
  }

  int successes() const { return successes_; }
  int refusals() const { return refusals_; }

 private:
  void CheckRights(DevicePtr ptr, const NaivePages::Page& page) {
    for (int device = 0; device < kDevices; ++device) {
      const Access expected = page.rights[static_cast<std::size_t>(device)];
      Access access = Access::kNone;
      ASSERT_EQ(memories_.virtuals.GetAccess(
                    ptr + 9, {Location::Kind::kDevice, device}, &access),
                kOk);
      ASSERT_EQ(access, expected);
      ASSERT_EQ(memories_.virtuals.AccessOf(ptr, kFrameBytes, device),
                expected);
    }
  }

  bool Agree(Status status, bool expected) {
    EXPECT_EQ(status == kOk, expected);
    ++(expected ? successes_ : refusals_);
    return expected;
  }

  std::uint64_t Frames() { return 1 + random_() % 3; }

  // Mostly inside or near a reservation.
  DevicePtr Address() {
    if (naive_.reservations.empty()) return kReservedWindowBegin;
    auto reservation = naive_.reservations.begin();
    std::advance(reservation, random_() % naive_.reservations.size());
    return reservation->first +
           random_() % (reservation->second + 1) * kFrameBytes;
  }

  // Half of the time, one whole mapping.
  std::pair<DevicePtr, std::uint64_t> Span() {
    if (naive_.pages.empty() || random_() % 2 == 0) {
      return {Address(), Frames()};
    }
    auto page = naive_.pages.begin();
    std::advance(page, random_() % naive_.pages.size());
    const DevicePtr begin = page->first - page->second.frame * kFrameBytes;
    const std::uint64_t mapping = page->second.mapping;
    std::uint64_t frames = 0;
    for (const auto& [ptr, other] : naive_.pages) {
      frames += other.mapping == mapping ? 1 : 0;
    }
    return {begin, frames};
  }

  MemHandle AnyHandle() {
    const std::uint64_t made = naive_.handles.size();
    return MemHandle{made < 8 ? random_() % 9 : made - random_() % 8};
  }

  void Reserve() {
    if (naive_.reservations.size() > 4) return;
    const std::uint64_t frames = 4 * Frames();
    DevicePtr ptr = 0;
    ASSERT_EQ(memories_.virtuals.Reserve(0, frames * kFrameBytes, 0, 0, &ptr),
              kOk);
    for (const auto& [begin, count] : naive_.reservations) {
      ASSERT_TRUE(ptr + frames * kFrameBytes <= begin ||
                  begin + count * kFrameBytes <= ptr);
    }
    naive_.reservations.emplace(ptr, frames);
  }

  void FreeReservation() {
    const DevicePtr ptr = Address();
    const std::uint64_t frames = 4 * Frames();
    const auto found = naive_.reservations.find(ptr);
    const bool expected = found != naive_.reservations.end() &&
                          found->second == frames &&
                          !naive_.AnyMapped(ptr, frames);
    if (Agree(memories_.virtuals.FreeReservation(ptr, frames * kFrameBytes),
              expected)) {
      naive_.reservations.erase(found);
    }
  }

  void Create() {
    const std::uint64_t frames = Frames();
    const int device = static_cast<int>(random_() % kDevices);
    MemProperties properties;
    properties.location.id = device;
    MemHandle handle;
    if (Agree(memories_.physical.Create(frames * kFrameBytes, properties,
                                        &handle),
              naive_.UsedFrames(device) + frames <= kFrames)) {
      ASSERT_TRUE(
          naive_.handles
              .emplace(handle.value, NaivePages::Handle{device, frames, 1})
              .second);
    }
  }

  void Release() {
    const MemHandle handle = AnyHandle();
    const auto found = naive_.handles.find(handle.value);
    if (Agree(memories_.physical.Release(handle),
              found != naive_.handles.end() && found->second.references > 0)) {
      --found->second.references;
    }
  }

  void Map() {
    const DevicePtr ptr = Address();
    const std::uint64_t frames = Frames();
    const MemHandle handle = AnyHandle();
    const auto found = naive_.handles.find(handle.value);
    const bool expected =
        found != naive_.handles.end() && found->second.references > 0 &&
        frames == found->second.frames && naive_.InReservation(ptr, frames) &&
        !naive_.AnyMapped(ptr, frames);
    if (!Agree(memories_.virtuals.Map(ptr, frames * kFrameBytes, 0, handle),
               expected)) {
      return;
    }
    ++naive_.last_mapping;
    for (std::uint64_t i = 0; i < frames; ++i) {
      naive_.pages[ptr + i * kFrameBytes] = {
          handle.value, i, naive_.last_mapping, {}};
    }
  }

  void Unmap() {
    const auto [ptr, frames] = Span();
    if (!Agree(memories_.virtuals.Unmap(ptr, frames * kFrameBytes, nullptr),
               naive_.CutsNothing(ptr, frames))) {
      return;
    }
    for (std::uint64_t i = 0; i < frames; ++i) {
      naive_.pages.erase(ptr + i * kFrameBytes);
    }
  }

  void SetAccess() {
    constexpr std::array<Access, 3> kAccess = {Access::kNone, Access::kRead,
                                               Access::kReadWrite};
    const auto [ptr, frames] = Span();
    AccessDescriptor descriptor;
    descriptor.location.id = static_cast<int>(random_() % kDevices);
    descriptor.access = kAccess[random_() % kAccess.size()];
    if (!Agree(memories_.virtuals.SetAccess(ptr, frames * kFrameBytes,
                                            &descriptor, 1, nullptr),
               naive_.Whole(ptr, frames))) {
      return;
    }
    for (std::uint64_t i = 0; i < frames; ++i) {
      naive_.pages.at(ptr + i * kFrameBytes)
          .rights[static_cast<std::size_t>(descriptor.location.id)] =
          descriptor.access;
    }
  }

  void Retain() {
    const DevicePtr ptr = Address();
    const auto page = naive_.pages.find(ptr);
    MemHandle handle;
    if (Agree(memories_.virtuals.Retain(ptr + 1, &handle),
              page != naive_.pages.end())) {
      ASSERT_EQ(handle.value, page->second.handle);
      ++naive_.handles.at(handle.value).references;
    }
  }

  std::mt19937_64 random_;
  Memories memories_;
  NaivePages naive_;
  int successes_ = 0;
  int refusals_ = 0;
};

TEST(VirtualMemoryTest, RandomUseAgreesWithANaivePageMap) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(seed);
    RandomUse use(seed);
    for (int step = 0; step < 3000; ++step) {
      SCOPED_TRACE(step);
      use.Step();
      use.Check();
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(use.successes(), 300);
    EXPECT_GT(use.refusals(), 300);
  }
}

TEST(VirtualMemoryTest, ReservationsComeFromTheWindowWithDelay) {
  Memories memories;
  DevicePtr first = 0;
  ASSERT_EQ(memories.virtuals.Reserve(0, kFrameBytes, 0, 0, &first), kOk);
  EXPECT_EQ(first, kReservedWindowBegin);
  EXPECT_TRUE(memories.virtuals.Contains(first));
  ASSERT_EQ(memories.virtuals.FreeReservation(first, kFrameBytes), kOk);
  for (int i = 0; i < 1000; ++i) {
    DevicePtr ptr = 0;
    ASSERT_EQ(memories.virtuals.Reserve(0, kFrameBytes, 0, 0, &ptr), kOk);
    ASSERT_NE(ptr, first);
    ASSERT_EQ(memories.virtuals.FreeReservation(ptr, kFrameBytes), kOk);
  }
}

TEST(VirtualMemoryTest, AccessOverARangeIsTheLeastOfItsMappings) {  // V6 V10
  Memories memories;
  DevicePtr ptr = 0;
  ASSERT_EQ(memories.virtuals.Reserve(0, 3 * kFrameBytes, 0, 0, &ptr), kOk);
  MemHandle handle;
  ASSERT_EQ(memories.physical.Create(kFrameBytes, {}, &handle), kOk);
  ASSERT_EQ(memories.virtuals.Map(ptr, kFrameBytes, 0, handle), kOk);
  ASSERT_EQ(memories.virtuals.Map(ptr + kFrameBytes, kFrameBytes, 0, handle),
            kOk);
  AccessDescriptor descriptor;
  ASSERT_EQ(memories.virtuals.SetAccess(ptr, 2 * kFrameBytes, &descriptor, 1,
                                        nullptr),
            kOk);
  descriptor.access = Access::kRead;
  ASSERT_EQ(memories.virtuals.SetAccess(ptr + kFrameBytes, kFrameBytes,
                                        &descriptor, 1, nullptr),
            kOk);
  const auto access = [&](DevicePtr begin, std::uint64_t bytes) {
    return memories.virtuals.AccessOf(begin, bytes, 0);
  };
  EXPECT_EQ(access(ptr, kFrameBytes), Access::kReadWrite);
  EXPECT_EQ(access(ptr, kFrameBytes + 1), Access::kRead);
  EXPECT_EQ(access(ptr, 2 * kFrameBytes + 1), std::nullopt);
  EXPECT_EQ(access(ptr + 2 * kFrameBytes, 1), std::nullopt);
  EXPECT_EQ(access(ptr, UINT64_MAX), std::nullopt);
}

}  // namespace
}  // namespace strata::sim
