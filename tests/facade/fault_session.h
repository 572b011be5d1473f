#ifndef STRATA_TESTS_FACADE_FAULT_SESSION_H_
#define STRATA_TESTS_FACADE_FAULT_SESSION_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/platform/platform.h"

namespace strata {

// A program that calls most of a facade on a device of 64 MiB. Each step
// succeeds or fails cleanly, so any call of the device may fail.
class FaultSession {
 public:
  FaultSession(std::shared_ptr<Platform> platform, const std::string& options)
      : platform_(std::move(platform)) {
    for (Stream& stream : streams_) {
      EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
                Status::kSuccess);
    }
    facade_ =
        std::make_unique<AllocatorFacade>(Options::Parse(options), platform_);
  }

  Device& device() { return platform_->device(0); }

  void Run() {
    const Stream a = streams_[0];
    const Stream b = streams_[1];
    AllocationPtr small = Alloc(Request{1000}, a);
    AllocationPtr large = Alloc(Request{Mebibytes(20)}, a);
    AllocationPtr aligned = Alloc(Request{1000, 1 << 16}, b);
    Try([&] { facade_->Wrap(b.handle, 0); });
    AllocationPtr managed = Alloc(Request{5000}, a, ManagedPlace(0));
    AllocationPtr pinned = Alloc(Request{5000}, a, PinnedPlace(0));
    Mark(small, b);
    Mark(pinned, a);
    Mark(managed, b);
    large.reset();
    // Takes the idle chunk of a, then needs the idle memory of all streams.
    AllocationPtr taken = Alloc(Request{Mebibytes(20)}, b);
    AllocationPtr second = Alloc(Request{Mebibytes(20)}, a);
    taken.reset();
    second.reset();
    AllocationPtr most = Alloc(Request{Mebibytes(50)}, a);
    AllocationPtr impossible = Alloc(Request{Mebibytes(500)}, a);
    EXPECT_EQ(impossible, nullptr);
    small.reset();
    pinned.reset();
    most.reset();
    Try([&] { facade_->Release(kHere); });
    AllocationPtr late = Alloc(Request{300}, b);
    Mark(late, a);
    Try([&] { facade_->StreamDestroyed(b); });
  }

  // Captures a graph that allocates, and launches it.
  void Capture() {
    Graph graph;
    Try([&] {
      CaptureGuard guard(*facade_, streams_[0]);
      const AllocationPtr inside =
          facade_->Alloc(kHere, Request{Kibibytes(256)}, streams_[0]);
      device().MemsetAsync(reinterpret_cast<DevicePtr>(inside->data()), 1,
                           inside->size(), streams_[0]);
      graph = guard.End();
    });
    EndCapture();
    if (!graph) return;
    GraphExec exec;
    if (device().GraphInstantiate(&exec, graph, 0) == Status::kSuccess) {
      device().GraphLaunch(exec, streams_[0]);
      Again([&] { return device().GraphExecDestroy(exec); });
    }
    Again([&] { return device().GraphDestroy(graph); });
  }

  // Exports memory and imports it, if the strategy can do that.
  void Export() {
    Try([&] {
      const AllocationPtr block =
          facade_->Alloc(kHere, Request{Mebibytes(3)}, streams_[0]);
      const ExportedMemory exported = facade_->Export(*block);
      facade_->Import(kHere, exported.pieces());
    });
  }

  // After the faults: requests of each kind are served.
  void ExpectUsable() {
    EXPECT_NE(Alloc(Request{1000}, streams_[0]), nullptr);
    EXPECT_NE(Alloc(Request{Mebibytes(20)}, streams_[0]), nullptr);
    EXPECT_NE(Alloc(Request{5000}, streams_[0], ManagedPlace(0)), nullptr);
    EXPECT_NE(Alloc(Request{5000}, streams_[0], PinnedPlace(0)), nullptr);
  }

  // Checks that nothing is left, and ends the facade.
  void Finish() {
    for (const Place place : facade_->places()) {
      const Stats stats = facade_->GetStats(place);
      EXPECT_GE(stats.allocations, met_[static_cast<std::size_t>(place.kind)]);
      EXPECT_EQ(stats.frees, stats.allocations);
      EXPECT_EQ(stats.in_use_bytes, 0U);
      facade_->Release(place);
      EXPECT_EQ(facade_->GetStats(place).reserved_bytes, 0U);
    }
    Close();
  }
  void Close() { facade_.reset(); }

  // After the faults: checks that the facade left the platform.
  void End() {
    EXPECT_EQ(platform_.use_count(), 1);
    for (const Stream& stream : streams_) {
      EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
    }
  }

 private:
  static constexpr Place kHere = DevicePlace(0);

  static void Try(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::bad_alloc&) {
    } catch (const DeviceError&) {
    } catch (const std::invalid_argument&) {  // from Wrap and Export
    }
  }
  // A program calls again until the object is gone.
  static void Again(const std::function<Status()>& call) {
    if (call() != Status::kSuccess) {
      EXPECT_EQ(call(), Status::kSuccess);
    }
  }
  // Ends the capture if the guard could not.
  void EndCapture() {
    CaptureStatus status = CaptureStatus::kNone;
    Again([&] { return device().StreamIsCapturing(streams_[0], &status); });
    if (status == CaptureStatus::kNone) return;
    Graph graph;
    device().StreamEndCapture(streams_[0], &graph);
    if (graph) Again([&] { return device().GraphDestroy(graph); });
  }

  AllocationPtr Alloc(const Request& request, Stream stream,
                      Place place = kHere) {
    const Stats before = facade_->GetStats(place);
    AllocationPtr result;
    Try([&] { result = facade_->Alloc(place, request, stream); });
    const Stats after = facade_->GetStats(place);
    met_[static_cast<std::size_t>(place.kind)] += result != nullptr;
    EXPECT_EQ(after.live_allocations() - before.live_allocations(),
              result != nullptr);
    // If the fill of a block failed, the block was allocated and freed.
    if (facade_->options().alloc_fill_value == -1) {
      EXPECT_EQ(after.frees, before.frees);
    }
    if (result == nullptr) {
      EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
      EXPECT_EQ(after.requested_bytes, before.requested_bytes);
    }
    return result;
  }

  void Mark(const AllocationPtr& allocation, Stream stream) {
    if (allocation == nullptr) return;
    Try([&] { facade_->RecordStream(allocation, stream); });
  }

  std::shared_ptr<Platform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Stream streams_[2];
  std::uint64_t met_[4] = {};  // by PlaceKind
};

}  // namespace strata

#endif  // STRATA_TESTS_FACADE_FAULT_SESSION_H_
