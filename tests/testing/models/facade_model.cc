#include "strata/tests/testing/models/facade_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/facade/options.h"

namespace strata {
namespace {

constexpr std::size_t kMaxLive = 300;

bool HasStreams(Place place) {
  return place.kind == PlaceKind::kDevice || place.kind == PlaceKind::kManaged;
}

std::shared_ptr<SimPlatform> MakePlatformFor(
    const FacadeModelOptions& options) {
  PlatformOptions platform;
  platform.platform = "sim";
  platform.sim_devices = FacadeModel::kDevices;
  platform.sim_memory_bytes = options.device_memory_bytes;
  platform.sim_seed = options.seed;
  return std::make_shared<SimPlatform>(platform);
}

}  // namespace

std::vector<DeviceCall> HarmlessFaults() {
  return {DeviceCall::kMemAlloc,    DeviceCall::kMallocFromPoolAsync,
          DeviceCall::kMemGetInfo,  DeviceCall::kEventCreate,
          DeviceCall::kEventRecord, DeviceCall::kStreamWaitEvent,
          DeviceCall::kStreamQuery, DeviceCall::kStreamSynchronize};
}

FacadeModel::FacadeModel(const FacadeModelOptions& options)
    : options_(options),
      choices_(options.bytes ? Choices(*options.bytes) : Choices(options.seed)),
      platform_(MakePlatformFor(options)),
      facade_(std::make_unique<AllocatorFacade>(Options::Parse(options.facade),
                                                platform_)) {
  for (int device = 0; device < kDevices; ++device) {
    std::vector<Stream>& streams = streams_.emplace_back(kStreams);
    for (Stream& stream : streams) {
      EXPECT_EQ(platform_->sim_device(device).StreamCreate(&stream,
                                                           kStreamNonBlocking),
                Status::kSuccess);
    }
    streams.push_back(platform_->sim_device(device).LegacyStream());
  }
}

std::string FacadeModel::Where() const {
  return "seed " + std::to_string(options_.seed) + ", operation " +
         std::to_string(step_) + ", options '" + options_.facade + "'";
}

Place FacadeModel::AnyPlace() {
  const int device = static_cast<int>(Below(kDevices));
  if (!OneIn(12)) return DevicePlace(device);
  const std::array<Place, 3> others = {HostPlace(), PinnedPlace(device),
                                       ManagedPlace(device)};
  return others[Below(others.size())];
}

Stream FacadeModel::AnyStream(int device) {
  const auto& streams = streams_[static_cast<std::size_t>(device)];
  return streams[Below(streams.size())];
}

Stream FacadeModel::StreamFor(Place place) {
  return HasStreams(place) ? AnyStream(place.index) : Stream();
}

std::size_t FacadeModel::AnySize(Place place) {
  const bool on_device = place.kind == PlaceKind::kDevice;
  if (OneIn(200)) {
    const std::size_t largest = std::numeric_limits<std::size_t>::max();
    const std::array<std::size_t, 4> absurd = {
        largest, largest - 255, on_device ? kAbsurdBytes : largest / 2,
        on_device ? (std::size_t{1} << 47) - 1 : largest - 4096};
    return absurd[Below(absurd.size())];
  }
  if (OneIn(50)) return 0;
  // Log-uniform: equally likely in each power of two.
  const double largest =
      on_device ? static_cast<double>(options_.device_memory_bytes) / 5
                : 256.0 * 1024;
  constexpr std::size_t kSteps = 4096;
  const double exponent = static_cast<double>(Below(kSteps)) / kSteps;
  const double bytes = std::exp2(exponent * std::log2(largest));
  // Not powers of two alone.
  return static_cast<std::size_t>(bytes) + Below(8);
}

Request FacadeModel::AnyRequest(Place place) {
  Request request{AnySize(place)};
  if (OneIn(20)) request.alignment = std::size_t{1} << Below(22);
  if (OneIn(30)) request.flags |= kNoGrowth;
  if (OneIn(30)) request.flags |= kLongLived;
  if (OneIn(30)) request.flags |= kNoRetry;
  return request;
}

AllocationPtr FacadeModel::Ask(Place place, const Request& request,
                               Stream stream) {
  Failure failure;
  try {
    if (OneIn(4)) {
      AllocationPtr made = facade_->TryAlloc(place, request, stream, failure);
      if (made == nullptr) NoteRefusal(place, request, failure);
      return made;
    }
    // The lookup of a handle is an additional device call.
    if (OneIn(4) && stream.uid != 0 && !options_.has_faults) {
      return facade_->Alloc(place, request, stream.handle);
    }
    return facade_->Alloc(place, request, stream);
  } catch (const BadAlloc& error) {
    failure = error.failure();
    EXPECT_EQ(failure.IsExhaustion(),
              dynamic_cast<const OutOfMemory*>(&error) != nullptr)
        << error.what() << "; " << Where();
  } catch (const DeviceError& error) {
    failure = error.failure();
  }
  NoteRefusal(place, request, failure);
  return nullptr;
}

void FacadeModel::NoteRefusal(Place place, const Request& request,
                              const Failure& failure) {
  ++refusals_;
  // The block was allocated, and freed again because its fill failed.
  if (std::strcmp(failure.detail, "debug fill") == 0) {
    ++sums_[place].allocations;
  }
  ExpectExhausted(place, request, failure);
}

void FacadeModel::Allocate() {
  const Place place = AnyPlace();
  Request request = AnyRequest(place);
  const Stream stream = StreamFor(place);
  if (OneIn(100)) {
    request.alignment = OneIn(2) ? 3 : 2 * kMaxAlignment;
    EXPECT_THROW(facade_->Alloc(place, request, stream), std::invalid_argument)
        << Where();
    return;
  }
  if (AllocationPtr made = Ask(place, request, stream)) {
    Note(std::move(made), place, request, stream);
  }
}

void FacadeModel::Note(AllocationPtr allocation, Place place,
                       const Request& request, Stream stream) {
  EXPECT_EQ(allocation->place(), place) << Where();
  EXPECT_EQ(allocation->requested_bytes(), request.bytes) << Where();
  EXPECT_GE(allocation->size(), request.bytes) << Where();
  if (request.bytes == 0) {
    EXPECT_EQ(allocation->data(), nullptr) << Where();
  } else {
    const auto address = reinterpret_cast<std::uintptr_t>(allocation->data());
    const std::size_t natural =
        place.kind == PlaceKind::kDevice ? kNaturalAlignment : 1;
    EXPECT_NE(address, 0U) << Where();
    EXPECT_EQ(address % std::max(natural, request.alignment), 0U) << Where();
    EXPECT_LE(reinterpret_cast<std::uintptr_t>(allocation->base()), address)
        << Where();
    EXPECT_TRUE(ranges_.Add(*allocation)) << "handed out twice; " << Where();
    if (HasStreams(place)) {
      EXPECT_TRUE(facade_->InSameStream(*allocation, stream)) << Where();
    }
    PlaceSums& sums = sums_[place];
    ++sums.live;
    ++sums.allocations;
    sums.requested_bytes += request.bytes;
    sums.in_use_bytes += HeldBytes(*allocation);
    sums.peak_in_use_bytes =
        std::max(sums.peak_in_use_bytes, sums.in_use_bytes);
  }
  live_.push_back(Live{std::move(allocation), place, stream, request.bytes});
}

std::size_t FacadeModel::HeldBytes(const Allocation& allocation) const {
  // Bytes skipped for alignment count too. The guard uses them as a red zone.
  return facade_->options().decorators.guard ? allocation.size()
                                             : allocation.block()->size;
}

void FacadeModel::Free(std::size_t index, bool on_another_stream) {
  Live freed = std::move(live_[index]);
  live_[index] = std::move(live_.back());
  live_.pop_back();
  if (freed.bytes != 0) {
    EXPECT_TRUE(ranges_.Remove(*freed.allocation)) << Where();
    PlaceSums& sums = sums_[freed.place];
    --sums.live;
    sums.requested_bytes -= freed.bytes;
    sums.in_use_bytes -= HeldBytes(*freed.allocation);
  }
  if (on_another_stream) {
    // Not through owner(): the owner of 0 bytes may be destroyed with its
    // stream.
    facade_->GetAllocator(freed.place)
        .Free(std::move(freed.allocation),
              AnyStream(static_cast<int>(Below(kDevices))));
  }
}

void FacadeModel::FreeMany() {
  const std::size_t keep = Below(4) * live_.size() / 4;
  while (live_.size() > keep) Free(Below(live_.size()), false);
}

void FacadeModel::Mark() {
  if (live_.empty()) return;
  const Live& live = live_[Below(live_.size())];
  const Stream stream = AnyStream(static_cast<int>(Below(kDevices)));
  if (OneIn(3)) {
    facade_->EraseStream(*live.allocation, stream);
    return;
  }
  const bool is_own = HasStreams(live.place) && stream == live.stream;
  EXPECT_EQ(facade_->RecordStream(live.allocation, stream),
            live.bytes != 0 && !is_own)
      << Where();
}

void FacadeModel::ReplaceStream() {
  const int device = static_cast<int>(Below(kDevices));
  Stream& stream = streams_[static_cast<std::size_t>(device)][Below(kStreams)];
  facade_->StreamDestroyed(stream);
  EXPECT_EQ(platform_->device(device).StreamDestroy(stream), Status::kSuccess)
      << Where();
  EXPECT_EQ(platform_->device(device).StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess)
      << Where();
}

void FacadeModel::Look() {
  const Place place = AnyPlace();
  EXPECT_NE(facade_->StatsJson().find(ToString(place)), std::string::npos)
      << Where();
  if (OneIn(2)) {
    facade_->ResetPeak(place);
    sums_[place].peak_in_use_bytes = sums_[place].in_use_bytes;
  }
  CheckBlocks(place);
}

void FacadeModel::Step() {
  ++step_;
  const std::size_t choice = Below(1000);
  if (choice < 450) {
    if (live_.size() < kMaxLive) Allocate();
  } else if (choice < 870) {
    if (!live_.empty()) Free(Below(live_.size()), OneIn(10));
  } else if (choice < 960) {
    Mark();
  } else if (choice < 970) {
    Release();
  } else if (choice < 978) {
    ReplaceStream();
  } else if (choice < 996) {
    Look();
  } else {
    FreeMany();
  }
  Check();
}

void FacadeModel::AddFault() {
  const std::vector<DeviceCall> calls = HarmlessFaults();
  SimDevice& device = platform_->sim_device(static_cast<int>(Below(kDevices)));
  FaultRule rule;
  rule.call = calls[Below(calls.size())];
  rule.nth = 1 + Below(4);  // counted from now
  device.AddFault(rule);
}

void FacadeModel::ClearFaults() {
  for (int i = 0; i < kDevices; ++i) platform_->sim_device(i).ClearFaults();
}

}  // namespace strata
