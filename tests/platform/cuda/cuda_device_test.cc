// The layer of the CUDA device above the driver, tested over a fake driver.

#include "strata/platform/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/platform/cuda/cuda_platform.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/tests/platform/cuda/fake_cuda_driver.h"

namespace strata::cuda {
namespace {

using Calls = std::vector<std::string>;

class CudaDeviceTest : public testing::Test {
 protected:
  CudaDeviceTest() : driver_(MakeFakeCudaDriver()) { Start(); }

  // Builds the platform; again after a change of the fake.
  void Start() {
    platform_.emplace(driver_);
    Fake().calls.clear();
  }
  CudaDevice& device(int ordinal = 0) {
    return platform_->cuda_device(ordinal);
  }

  CudaDriver driver_;
  std::optional<CudaPlatform> platform_;
};

TEST_F(CudaDeviceTest, WorksInTheDevicesOwnContext) {
  Fake().current = FakeContext(7);
  DevicePtr ptr = 0;
  EXPECT_EQ(device(1).MemAlloc(&ptr, 512), Status::kSuccess);
  EXPECT_EQ(Fake().current_in_call, FakeContext(1));
}

TEST_F(CudaDeviceTest, PutsTheCallersContextBack) {
  Fake().current = FakeContext(7);
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, 512), Status::kSuccess);
  EXPECT_EQ(Fake().current, FakeContext(7));
}

TEST_F(CudaDeviceTest, LeavesAThreadWithoutContextWithoutOne) {
  Fake().results["MemAlloc"] = CUDA_ERROR_OUT_OF_MEMORY;
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, 512), Status::kMemoryAllocation);
  EXPECT_EQ(Fake().current, nullptr);
  EXPECT_EQ(Fake().pushes, Fake().pops);
}

TEST_F(CudaDeviceTest, SwitchesNothingIfTheContextIsCurrent) {
  Fake().current = FakeContext(0);
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, 512), Status::kSuccess);
  EXPECT_EQ(Fake().pushes, 0);
}

TEST_F(CudaDeviceTest, MakesNoContextBeforeACallNeedsOne) {
  device().LegacyStream();
  device().PerThreadStream();
  device().caps();
  EXPECT_EQ(Fake().contexts_made, 0);
}

TEST_F(CudaDeviceTest, MakesItsContextOnce) {
  EXPECT_EQ(device().MemFree(16), Status::kSuccess);
  EXPECT_EQ(device().MemFree(32), Status::kSuccess);
  EXPECT_EQ(Fake().contexts_made, 1);
}

TEST_F(CudaDeviceTest, ReleasesItsContext) {
  ASSERT_EQ(device().MemFree(16), Status::kSuccess);
  Fake().calls.clear();
  platform_.reset();
  EXPECT_EQ(Fake().calls, Calls{"DevicePrimaryCtxRelease"});
}

TEST_F(CudaDeviceTest, TriesAgainToMakeAContext) {
  Fake().results["DevicePrimaryCtxRetain"] = CUDA_ERROR_OUT_OF_MEMORY;
  DevicePtr ptr = 0;
  EXPECT_EQ(device().MemAlloc(&ptr, 512), Status::kMemoryAllocation);
  EXPECT_EQ(device().MemAlloc(&ptr, 512), Status::kSuccess);
}

TEST_F(CudaDeviceTest, KeepsNumbersThatStatusDoesNotName) {
  Fake().results["MemFree"] = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(static_cast<int>(device().MemFree(16)), 719);
}

TEST_F(CudaDeviceTest, WritesNoResultOfARefusedCall) {
  Fake().results["MemAlloc"] = CUDA_ERROR_OUT_OF_MEMORY;
  DevicePtr ptr = 17;
  ASSERT_EQ(device().MemAlloc(&ptr, 512), Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 17u);
}

// The driver would accept any number.
TEST_F(CudaDeviceTest, RefusesCaptureModesThatThereAreNot) {
  for (const int number : {-1, 3}) {
    auto mode = static_cast<CaptureMode>(number);
    EXPECT_EQ(device().ThreadExchangeCaptureMode(&mode), Status::kInvalidValue);
    EXPECT_EQ(Fake().capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(device().StreamBeginCapture(device().LegacyStream(), mode),
              Status::kInvalidValue);
  }
}

TEST_F(CudaDeviceTest, AllocatesNoBytesWithoutTheDriver) {
  DevicePtr ptr = 17;
  EXPECT_EQ(device().MemAlloc(&ptr, 0), Status::kSuccess);
  EXPECT_EQ(ptr, 0u);
  EXPECT_EQ(Fake().calls, Calls{"DevicePrimaryCtxRetain"});
}

TEST_F(CudaDeviceTest, CopiesNoBytesWithoutTheDriver) {
  EXPECT_EQ(device().MemcpyAsync(16, 32, 0, device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(Fake().calls, Calls{"DevicePrimaryCtxRetain"});
}

TEST_F(CudaDeviceTest, FreesNullWithoutTheDriver) {
  EXPECT_EQ(device().MemFree(0), Status::kSuccess);
  EXPECT_EQ(Fake().calls, Calls{"DevicePrimaryCtxRetain"});
}

TEST_F(CudaDeviceTest, UnknownAddressIsOfNoDevice) {
  PointerInfo info{MemoryType::kHost, 5};
  ASSERT_EQ(device().PointerAttributes(0, &info), Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kUnregistered);
  EXPECT_EQ(info.device, -1);
}

TEST_F(CudaDeviceTest, DeviceAddressNamesItsDevice) {
  PointerInfo info;
  ASSERT_EQ(device().PointerAttributes(64, &info), Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kDevice);
  EXPECT_EQ(info.device, 1);
}

TEST_F(CudaDeviceTest, EnablesAccessByThePeersContext) {
  EXPECT_EQ(device().EnablePeerAccess(1), Status::kSuccess);
  EXPECT_EQ(Fake().calls.back(), "EnablePeer1");
}

TEST_F(CudaDeviceTest, NoDeviceIsItsOwnPeer) {
  EXPECT_EQ(device().EnablePeerAccess(0), Status::kInvalidDevice);
  EXPECT_EQ(device().EnablePeerAccess(2), Status::kInvalidDevice);
}

TEST_F(CudaDeviceTest, FirstStreamOfTheDriverIsNotTheLegacyOne) {
  Stream first;
  Stream second;
  ASSERT_EQ(device().StreamCreate(&first, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamCreate(&second, 0), Status::kSuccess);
  EXPECT_GT(first.uid, kLegacyStreamUid);
  EXPECT_NE(first.uid, second.uid);
  EXPECT_EQ(first.handle, second.handle);  // recycled
}

TEST_F(CudaDeviceTest, DestroysAStreamThatHasNoIdentity) {
  Fake().results["StreamGetId"] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Stream stream;
  EXPECT_EQ(device().StreamCreate(&stream, 0),
            Status::kStreamCaptureUnsupported);
  EXPECT_EQ(stream.uid, 0u);
  EXPECT_EQ(Fake().calls.back(), "StreamDestroy");
}

TEST_F(CudaDeviceTest, StreamOfAnotherDeviceDoesNotReachTheDriver) {
  EXPECT_EQ(device(0).StreamSynchronize(device(1).LegacyStream()),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(device(0).StreamQuery(Stream()), Status::kInvalidResourceHandle);
  EXPECT_EQ(Fake().calls, Calls{"DevicePrimaryCtxRetain"});
}

TEST_F(CudaDeviceTest, PerThreadStreamOfAnotherThreadIsRefused) {
  Stream other;
  std::thread([&] { other = device().PerThreadStream(); }).join();
  EXPECT_EQ(device().StreamQuery(other), Status::kInvalidResourceHandle);
  EXPECT_EQ(device().StreamQuery(device().PerThreadStream()), Status::kSuccess);
}

TEST_F(CudaDeviceTest, StreamsThatExistByThemselvesAreNotDestroyed) {
  EXPECT_EQ(device().StreamDestroy(device().LegacyStream()),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(device().StreamDestroy(device().PerThreadStream()),
            Status::kInvalidResourceHandle);
}

TEST_F(CudaDeviceTest, NullHandleIsTheLegacyStream) {
  Stream stream;
  ASSERT_EQ(device().WrapStream(nullptr, &stream), Status::kSuccess);
  EXPECT_EQ(stream, device().LegacyStream());
  EXPECT_EQ(stream.handle, CU_STREAM_LEGACY);
}

TEST_F(CudaDeviceTest, WrappedStreamHasTheUidOfTheCreatedOne) {
  Fake().stream_context = FakeContext(0);
  Stream created;
  ASSERT_EQ(device().StreamCreate(&created, 0), Status::kSuccess);
  --Fake().next_stream_id;  // asked again, the driver returns the old id
  Stream wrapped;
  ASSERT_EQ(device().WrapStream(created.handle, &wrapped), Status::kSuccess);
  EXPECT_EQ(wrapped, created);
}

TEST_F(CudaDeviceTest, ShowsTheFlagsOfAWrappedStream) {
  CallRecord seen;
  device().SetCallObserver([&](const CallRecord& record) { seen = record; });
  Fake().stream_context = FakeContext(0);
  Fake().stream_flags = CU_STREAM_NON_BLOCKING;
  Stream stream;
  ASSERT_EQ(device().WrapStream(FakeHandle<void*>(0x5000), &stream),
            Status::kSuccess);
  EXPECT_EQ(seen.value, kStreamNonBlocking);
  ASSERT_EQ(device().WrapStream(nullptr, &stream), Status::kSuccess);
  EXPECT_EQ(seen.value, 0u);
}

TEST_F(CudaDeviceTest, StreamWhoseFlagsAreNotKnownIsNotWrapped) {
  Fake().stream_context = FakeContext(0);
  Fake().results["StreamGetFlags"] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Stream stream;
  EXPECT_EQ(device().WrapStream(FakeHandle<void*>(0x5000), &stream),
            Status::kStreamCaptureUnsupported);
  EXPECT_EQ(stream.uid, 0u);
}

TEST_F(CudaDeviceTest, StreamOfAnotherContextIsNotWrapped) {
  Fake().stream_context = FakeContext(1);
  Stream stream;
  EXPECT_EQ(device().WrapStream(FakeHandle<void*>(0x5000), &stream),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(stream.uid, 0u);
}

TEST_F(CudaDeviceTest, NullEventDoesNotReachTheDriver) {
  EXPECT_EQ(device().EventQuery(Event()), Status::kInvalidResourceHandle);
  EXPECT_EQ(Fake().calls, Calls{"DevicePrimaryCtxRetain"});
}

TEST_F(CudaDeviceTest, ReadsPoolAttributesInTheirWidth) {
  const MemPool pool{FakeHandle<void*>(0xb000)};
  std::uint64_t value = 0;
  ASSERT_EQ(device().PoolGetAttribute(
                pool, PoolAttribute::kReuseAllowInternalDependencies, &value),
            Status::kSuccess);
  EXPECT_EQ(value, 1u);
  ASSERT_EQ(
      device().PoolGetAttribute(pool, PoolAttribute::kReleaseThreshold, &value),
      Status::kSuccess);
  EXPECT_EQ(value, std::uint64_t{1} << 40);
}

TEST_F(CudaDeviceTest, CallsThatTheDeviceLacksAreNotCounted) {
  Fake().has_pools = false;
  Start();
  MemPool pool;
  EXPECT_EQ(device().DefaultMemPool(&pool), Status::kNotSupported);
  EXPECT_EQ(device().CallCount(DeviceCall::kDefaultMemPool), 0u);
  EXPECT_FALSE(device().caps().graph_mem_nodes);
}

TEST_F(CudaDeviceTest, CallsThatTheDriverLacksAreNotCounted) {
  driver_.StreamGetCaptureInfo = nullptr;
  Start();
  CaptureInfo info;
  EXPECT_EQ(device().StreamCaptureInfo(device().LegacyStream(), &info),
            Status::kNotSupported);
  EXPECT_EQ(device().CallCount(DeviceCall::kStreamCaptureInfo), 0u);
}

TEST_F(CudaDeviceTest, SaysAtWhatGranularityItMaps) {
  EXPECT_EQ(device().caps().map_granularity_bytes, std::size_t{2} << 20);
  Fake().has_virtual_memory = false;
  Start();
  EXPECT_EQ(device().caps().map_granularity_bytes, 0u);
}

TEST_F(CudaDeviceTest, SaysItsComputeCapability) {
  EXPECT_EQ(device().caps().compute_major, 9);
  EXPECT_EQ(device().caps().compute_minor, 1);
}

TEST_F(CudaDeviceTest, InactiveCaptureHasNoGraph) {
  Fake().capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  CaptureInfo info;
  ASSERT_EQ(device().StreamCaptureInfo(device().PerThreadStream(), &info),
            Status::kSuccess);
  EXPECT_EQ(info.status, CaptureStatus::kInvalidated);
  EXPECT_FALSE(info.graph);
  EXPECT_TRUE(info.dependencies.empty());
}

TEST_F(CudaDeviceTest, ActiveCaptureSaysWhatTheNextNodeDependsOn) {
  Fake().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CaptureInfo info;
  ASSERT_EQ(device().StreamCaptureInfo(device().PerThreadStream(), &info),
            Status::kSuccess);
  EXPECT_EQ(info.id, 7u);
  ASSERT_EQ(info.dependencies.size(), 1u);
  EXPECT_EQ(info.dependencies[0].value, FakeHandle<void*>(0x8000));
}

TEST_F(CudaDeviceTest, MemoryTravelsAsDescriptor) {
  Shareable shareable;
  ASSERT_EQ(device().ExportMemory({3}, ShareType::kPosixFd, &shareable),
            Status::kSuccess);
  MemHandle imported;
  ASSERT_EQ(device().ImportMemory(&imported, ShareType::kPosixFd, shareable),
            Status::kSuccess);
  EXPECT_EQ(imported.value, 12u);
}

TEST_F(CudaDeviceTest, MemoryTravelsAsBytes) {
  Shareable shareable;
  ASSERT_EQ(device().ExportMemory({3}, ShareType::kFabric, &shareable),
            Status::kSuccess);
  MemHandle imported;
  ASSERT_EQ(device().ImportMemory(&imported, ShareType::kFabric, shareable),
            Status::kSuccess);
  EXPECT_EQ(imported.value, 9u);
}

TEST_F(CudaDeviceTest, CountsAndShowsRefusedCalls) {
  std::vector<CallRecord> seen;
  device().SetCallObserver(
      [&](const CallRecord& record) { seen.push_back(record); });
  Fake().results["MemAlloc"] = CUDA_ERROR_OUT_OF_MEMORY;
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, 512), Status::kMemoryAllocation);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].bytes, 512u);
  EXPECT_EQ(seen[0].status, Status::kMemoryAllocation);
  EXPECT_EQ(device().CallCount(DeviceCall::kMemAlloc), 1u);
}

// The columns of call_trace.h; the simulated device has equal ones.
TEST_F(CudaDeviceTest, ShowsTheHandleACallIsAbout) {
  std::vector<CallRecord> seen;
  device().SetCallObserver(
      [&](const CallRecord& record) { seen.push_back(record); });
  Shareable shareable;
  MemHandle imported;
  ASSERT_EQ(device().ExportMemory({3}, ShareType::kPosixFd, &shareable),
            Status::kSuccess);
  ASSERT_EQ(device().ImportMemory(&imported, ShareType::kPosixFd, shareable),
            Status::kSuccess);
  const MemPool pool{FakeHandle<void*>(0xb000)};
  std::uint64_t value = 0;
  ASSERT_EQ(
      device().PoolGetAttribute(pool, PoolAttribute::kReleaseThreshold, &value),
      Status::kSuccess);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].ptr, 3u);
  EXPECT_EQ(seen[0].value, 1u);
  EXPECT_EQ(seen[1].ptr, 12u);
  EXPECT_EQ(seen[2].ptr, 0xb000u);
  EXPECT_EQ(seen[2].value, 4u);
}

TEST_F(CudaDeviceTest, ObserverRunsInTheCallersContext) {
  Fake().current = FakeContext(7);
  CUcontext seen = nullptr;
  device().SetCallObserver([&](const CallRecord&) { seen = Fake().current; });
  ASSERT_EQ(device().MemFree(16), Status::kSuccess);
  EXPECT_EQ(seen, FakeContext(7));
}

using CudaDeviceDeathTest = CudaDeviceTest;

TEST_F(CudaDeviceDeathTest, CallWithALockHeldAborts) {
  SpinLock lock;
  std::lock_guard guard(lock);
  EXPECT_DEATH(device().MemFree(16), "mem_free called with 1 lock");
}

using CudaWorkTest = CudaDeviceTest;

TEST_F(CudaWorkTest, IsReadyBeforeTheFirstLaunch) {
  ASSERT_NE(platform_->work(0), nullptr);
  EXPECT_EQ(Fake().calls,
            (Calls{"DevicePrimaryCtxRetain", "ModuleLoadData",
                   "ModuleGetFunction", "StreamCreate", "LaunchKernel",
                   "StreamSynchronize", "StreamDestroy"}));
}

// An operation that a capturing thread may do only in relaxed mode.
TEST_F(CudaWorkTest, IsLoadedByARelaxedThread) {
  Fake().capture_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  ASSERT_NE(platform_->work(0), nullptr);
  EXPECT_EQ(Fake().mode_of_load, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(Fake().capture_mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST_F(CudaWorkTest, GoesToTheStreamInEnoughBlocks) {
  const std::vector<WorkRange> ranges = {{64, 8, false},
                                         {1 << 20, 8 * 256 * 5, true}};
  ASSERT_EQ(platform_->work(0)->Enqueue(device().LegacyStream(), ranges.data(),
                                        ranges.size(), 0, 1),
            Status::kSuccess);
  EXPECT_EQ(Fake().last_stream, CU_STREAM_LEGACY);
  EXPECT_EQ(Fake().last_blocks, 5u);
}

TEST_F(CudaWorkTest, EarlyWorkIsAProgrammaticLaunch) {
  ASSERT_EQ(platform_->work(0)->EnqueueEarly(device().LegacyStream(), nullptr,
                                             0, 0, 0),
            Status::kSuccess);
  EXPECT_EQ(Fake().calls.back(), "LaunchKernelEx");
  EXPECT_EQ(Fake().last_stream, CU_STREAM_LEGACY);
  ASSERT_EQ(Fake().launch_attributes.size(), 1u);
  const CUlaunchAttribute& attribute = Fake().launch_attributes[0];
  EXPECT_EQ(attribute.id,
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  EXPECT_EQ(attribute.value.programmaticStreamSerializationAllowed, 1);
  EXPECT_NE(Fake().module_text.find("griddepcontrol.wait"), std::string::npos);
}

TEST_F(CudaWorkTest, OlderGpusRunEarlyWorkInTheOrderOfTheStream) {
  Fake().compute_major = 8;
  Start();
  ASSERT_EQ(platform_->work(0)->EnqueueEarly(device().LegacyStream(), nullptr,
                                             0, 0, 0),
            Status::kSuccess);
  EXPECT_EQ(Fake().calls.back(), "LaunchKernel");
  EXPECT_EQ(Fake().module_text.find("griddepcontrol"), std::string::npos);
}

TEST_F(CudaWorkTest, RefusesRangesThatAreNotOfWords) {
  DeviceWork* work = platform_->work(0);
  const WorkRange odd_address{12, 8, true};
  const WorkRange odd_bytes{16, 12, true};
  Fake().calls.clear();
  for (const WorkRange& range : {odd_address, odd_bytes}) {
    EXPECT_EQ(work->Enqueue(device().LegacyStream(), &range, 1, 0, 0),
              Status::kInvalidValue);
  }
  const std::vector<WorkRange> many(kMaxWorkRanges + 1);
  EXPECT_EQ(
      work->Enqueue(device().LegacyStream(), many.data(), many.size(), 0, 0),
      Status::kInvalidValue);
  EXPECT_TRUE(Fake().calls.empty());
}

TEST_F(CudaWorkTest, SaysWhyTheKernelCouldNotBeLoaded) {
  Fake().results["ModuleLoadData"] = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  EXPECT_EQ(static_cast<int>(platform_->work(0)->Enqueue(
                device().LegacyStream(), nullptr, 0, 0, 0)),
            222);
}

TEST(CudaFakePlatformTest, NoDeviceIsAnError) {
  const CudaDriver driver = MakeFakeCudaDriver();
  Fake().devices = 0;
  EXPECT_THROW(CudaPlatform{driver}, std::runtime_error);
}

}  // namespace
}  // namespace strata::cuda
