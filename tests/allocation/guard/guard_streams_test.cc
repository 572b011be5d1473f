// The order of the Guard layer's reads and writes: behind the work of the
// chain's stream and of the named streams.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "strata/tests/allocation/guard/guard_fixture.h"
#include "strata/tests/testing/devices/refusing_device.h"

namespace strata {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Kind = GuardError::Kind;

// Work runs only when the host waits for it.
class GuardStreamsTest : public ::testing::Test {
 protected:
  static GuardedOptions OptionsOf() {
    GuardedOptions options;
    options.progress = "manual";
    return options;
  }
  ~GuardStreamsTest() override { on_.device().SetCallObserver(nullptr); }

  void WatchWaits() {
    on_.device().SetCallObserver([this](const CallRecord& call) {
      if (call.call == DeviceCall::kStreamSynchronize) {
        waited_.push_back(call.stream_uid);
      }
    });
  }

  Guarded on_{OptionsOf()};
  Stream other_ = on_.place.NewStream();
  std::vector<std::uint64_t> waited_;
};

TEST_F(GuardStreamsTest, WritesInPendingWorkBeforeTheFreeAreNoUseAfterFree) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block), 0x41);
  block.reset();
  on_.Flush();
  EXPECT_THAT(on_.errors, IsEmpty());
}

TEST_F(GuardStreamsTest, WritesInPendingWorkAfterTheFreeAreFound) {
  AllocationPtr block = on_.guard->Allocate(1000);
  const std::uintptr_t address = AddressOf(block);
  block.reset();
  on_.Write(address + 5, 0x41);
  on_.Flush();
  ASSERT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.errors[0].kind, Kind::kUseAfterFree);
  EXPECT_EQ(on_.errors[0].offset, 5);
}

TEST_F(GuardStreamsTest, AFreeWaitsForNothingWhileTheQuarantineHasRoom) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block), 0x41);
  WatchWaits();
  block.reset();
  EXPECT_THAT(waited_, IsEmpty());
}

TEST_F(GuardStreamsTest, WaitsForTheChainsStreamAlone) {
  AllocationPtr block = on_.guard->Allocate(1000);
  block.reset();
  WatchWaits();
  on_.guard->CheckAll();
  EXPECT_THAT(waited_, Contains(on_.stream->stream().uid));
  EXPECT_THAT(waited_, Not(Contains(other_.uid)));
}

// cuda_semantics.md §5.2 M4.
TEST_F(GuardStreamsTest, PoisonComesAfterTheUseOfAMarkedStream) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block) + 3, 0x41, other_);
  on_.guard->RecordStream(block.get(), other_);
  block.reset();
  on_.Flush();
  EXPECT_THAT(on_.errors, IsEmpty());
}

TEST_F(GuardStreamsTest, FindsWhatAMarkedStreamWroteBesideTheBlock) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block) + 1000, 0x41, other_);
  on_.guard->RecordStream(block.get(), other_);
  block.reset();
  on_.Flush();
  ASSERT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.errors[0].kind, Kind::kOverrun);
}

TEST_F(GuardStreamsTest, ACheckOfALiveBlockComesAfterItsMarkedStreams) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block) + 1000, 0x41, other_);
  on_.guard->RecordStream(block.get(), other_);
  EXPECT_EQ(on_.guard->CheckAll().errors, 1U);
}

TEST_F(GuardStreamsTest, AnErasedMarkIsNotWaitedFor) {
  AllocationPtr block = on_.guard->Allocate(1000);
  for (int i = 0; i < 5; ++i) {
    on_.guard->RecordStream(block.get(), on_.place.NewStream());
  }
  on_.guard->RecordStream(block.get(), other_);
  on_.guard->RecordStream(block.get(), other_);
  const std::uint64_t records =
      on_.device().CallCount(DeviceCall::kEventRecord);
  on_.guard->EraseStream(block.get(), other_);
  block.reset();
  EXPECT_EQ(on_.device().CallCount(DeviceCall::kEventRecord), records + 5);
}

TEST_F(GuardStreamsTest, ItsOwnStreamNeedsNoMark) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.guard->RecordStream(block.get(), on_.stream->stream());
  on_.guard->RecordStream(block.get(), Stream());
  block.reset();
  EXPECT_EQ(on_.device().CallCount(DeviceCall::kEventRecord), 0U);
}

TEST_F(GuardStreamsTest, ADestroyedStreamsUseIsOrderedWhenItIsAnnounced) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block) + 1000, 0x41, other_);
  on_.guard->RecordStream(block.get(), other_);
  on_.guard->StreamDestroyed(other_);
  EXPECT_EQ(on_.device().StreamDestroy(other_), Status::kSuccess);
  block.reset();
  on_.Flush();
  EXPECT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.reporter->skipped(), 0U);
}

TEST_F(GuardStreamsTest, AStreamDestroyedWithoutNoticeCostsTheCheck) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.guard->RecordStream(block.get(), other_);
  EXPECT_EQ(on_.device().StreamDestroy(other_), Status::kSuccess);
  block.reset();
  on_.Flush();
  EXPECT_THAT(on_.errors, IsEmpty());
  EXPECT_EQ(on_.reporter->skipped(), 1U);
  EXPECT_EQ(on_.below->live(), 0U);
}

TEST_F(GuardStreamsTest, TheQuarantineIsCheckedBeforeItsStreamGoes) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block) + 1000, 0x41);
  block.reset();
  on_.guard->StreamDestroyed(on_.stream->stream());
  EXPECT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.guard->quarantine_bytes(), 0U);
}

TEST_F(GuardStreamsTest, BlocksThatOutliveTheirStreamAreStillChecked) {
  AllocationPtr bad = on_.guard->Allocate(1000);
  AllocationPtr good = on_.guard->Allocate(1000);
  on_.Write(AddressOf(bad) + 1000, 0x41);
  EXPECT_EQ(on_.stream->Synchronize(), Status::kSuccess);
  on_.stream->Retire();
  EXPECT_EQ(on_.device().StreamDestroy(on_.stream->stream()), Status::kSuccess);
  good.reset();
  bad.reset();
  on_.Flush();
  EXPECT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.reporter->skipped(), 0U);
}

TEST_F(GuardStreamsTest, PinnedMemoryIsCheckedAfterTheStreamsThatUsedIt) {
  GuardedOptions options = OptionsOf();
  options.kind = PlaceKind::kPinned;
  Guarded on(options);
  const Stream stream = on.place.NewStream();
  AllocationPtr block = on.guard->Allocate(1000);
  EXPECT_EQ(on.device().MemsetAsync(AddressOf(block), 0x41, 1001, stream),
            Status::kSuccess);
  on.guard->RecordStream(block.get(), stream);
  block.reset();
  on.Flush();
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].kind, Kind::kOverrun);
  EXPECT_EQ(on.errors[0].changed_bytes, 1U);
}

// During a capture of its stream, all work submitted to it would become part of
// the graph, and a wait would break the capture.
class CapturingDevice final : public RefusingDevice {
 public:
  CapturingDevice() { caps_.capture = true; }

  Status StreamIsCapturing(Stream stream, CaptureStatus* status) override {
    *status =
        stream == capturing ? CaptureStatus::kActive : CaptureStatus::kNone;
    return Status::kSuccess;
  }
  Status StreamSynchronize(Stream /*stream*/) override { return Submit(); }
  Status StreamWaitEvent(Stream /*stream*/, Event /*event*/,
                         unsigned /*flags*/) override {
    return Submit();
  }
  Status EventCreate(Event* /*event*/, unsigned /*flags*/) override {
    return Submit();
  }
  Status EventDestroy(Event /*event*/) override { return Submit(); }
  Status EventRecord(Event /*event*/, Stream /*stream*/,
                     unsigned /*flags*/) override {
    return Submit();
  }
  Status MemcpyAsync(DevicePtr /*target*/, DevicePtr /*source*/,
                     std::size_t /*bytes*/, Stream /*stream*/) override {
    return Submit();
  }
  Status MemsetAsync(DevicePtr /*ptr*/, int /*value*/, std::size_t /*bytes*/,
                     Stream /*stream*/) override {
    return Submit();
  }

  Stream capturing;
  int submitted = 0;

 private:
  Status Submit() {
    ++submitted;
    return Status::kSuccess;
  }
};

class CapturingPlatform final : public Platform {
 public:
  const char* name() const override { return "capturing"; }
  int device_count() const override { return 1; }
  Device& device(int /*ordinal*/) override { return device_; }

  CapturingDevice device_;
};

TEST(GuardMemoryTest, DoesNothingWhileItsStreamIsCaptured) {
  auto platform = std::make_shared<CapturingPlatform>();
  CapturingDevice& device = platform->device_;
  const Stream stream{nullptr, 0, 7};
  const Stream other{nullptr, 0, 8};
  GuardMemory memory(DevicePlace(0), platform,
                     std::make_shared<ChainStream>(device, stream));
  std::byte byte{};
  const GuardZone zone{&byte, 1, 0};
  GuardChange change;
  EXPECT_EQ(memory.Fill(zone), Status::kSuccess);
  EXPECT_EQ(memory.Compare(&zone, 1, &change), Status::kSuccess);
  EXPECT_EQ(memory.OrderAfter(other), Status::kSuccess);
  device.capturing = stream;
  device.submitted = 0;
  EXPECT_EQ(memory.Fill(zone), Status::kStreamCaptureUnsupported);
  EXPECT_EQ(memory.Compare(&zone, 1, &change),
            Status::kStreamCaptureUnsupported);
  EXPECT_EQ(memory.OrderAfter(other), Status::kStreamCaptureUnsupported);
  device.capturing = other;
  EXPECT_EQ(memory.OrderAfter(other), Status::kStreamCaptureUnsupported);
  EXPECT_EQ(device.submitted, 0);
}

TEST(GuardMemoryTest, ComparesZonesInPieces) {
  GuardedOptions options;
  Guarded on(options);
  const AllocationPtr block = on.guard->Allocate(Kibibytes(300));
  const auto* data = static_cast<const std::byte*>(block->data());
  GuardMemory memory(DevicePlace(0), on.place.platform(), on.stream);
  EXPECT_EQ(memory.Fill({data, Kibibytes(300), 5}), Status::kSuccess);
  on.Write(AddressOf(block) + Kibibytes(64) - 1, 6);
  on.Write(AddressOf(block) + Kibibytes(64), 7);
  on.Write(AddressOf(block) + Kibibytes(200), 8);
  // Two adjacent zones, a gap that belongs to no block, and one more zone.
  const std::vector<GuardZone> zones = {
      {data, Kibibytes(64), 5},
      {data + Kibibytes(64), Kibibytes(100), 5},
      {data + Kibibytes(200) + 1, Kibibytes(100) - 1, 5},
      {data + Kibibytes(300), 0, 5}};
  std::vector<GuardChange> changes(zones.size());
  ASSERT_EQ(memory.Compare(zones.data(), zones.size(), changes.data()),
            Status::kSuccess);
  EXPECT_EQ(changes[0].count, 1U);
  EXPECT_EQ(changes[0].first, Kibibytes(64) - 1);
  EXPECT_EQ(changes[0].found, 6);
  EXPECT_EQ(changes[1].count, 1U);
  EXPECT_EQ(changes[1].first, 0U);
  EXPECT_EQ(changes[1].found, 7);
  EXPECT_EQ(changes[2].count, 0U);
  EXPECT_EQ(changes[3].count, 0U);
}

TEST(GuardMemoryTest, WithoutADeviceNothingCanBeDone) {
  GuardMemory memory(ManagedPlace(7), nullptr, nullptr);
  std::byte byte{};
  const GuardZone zone{&byte, 1, 0};
  GuardChange change;
  EXPECT_EQ(memory.Fill(zone), Status::kInvalidDevice);
  EXPECT_EQ(memory.Compare(&zone, 1, &change), Status::kInvalidDevice);
  EXPECT_EQ(memory.OrderAfter(Stream{nullptr, 0, 8}), Status::kInvalidDevice);
}

}  // namespace
}  // namespace strata
