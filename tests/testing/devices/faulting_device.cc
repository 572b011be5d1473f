#include "strata/tests/testing/devices/faulting_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>

#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

// The bytes that an out-parameter points to. Other arguments have none.
template <class Argument>
class OutBytes {
 public:
  explicit OutBytes(Argument argument) : argument_(argument) {
    if constexpr (kIsOut) {
      if (argument != nullptr) {
        // Also for types with a constructor: the bytes are only compared.
        std::memcpy(bytes_.data(), static_cast<const void*>(argument),
                    bytes_.size());
      }
    }
  }

  bool Unchanged() const {
    if constexpr (kIsOut) {
      return argument_ == nullptr ||
             std::memcmp(bytes_.data(), argument_, bytes_.size()) == 0;
    }
    return true;
  }

 private:
  using Target = std::remove_pointer_t<Argument>;
  static constexpr bool kIsOut = std::is_pointer_v<Argument> &&
                                 std::is_object_v<Target> &&
                                 !std::is_const_v<Target>;
  static constexpr std::size_t Size() {
    if constexpr (kIsOut) return sizeof(Target);
    return 1;
  }

  Argument argument_;
  std::array<unsigned char, Size()> bytes_{};
};

template <DeviceCall kCall>
using Call = std::integral_constant<DeviceCall, kCall>;

// Follows the objects that calls on one device add to the state or remove.
struct Follower {
  Device& device;
  FaultedState& state;

  // A call without an overload adds and removes nothing.
  template <DeviceCall kCall, class... Arguments>
  void operator()(Call<kCall>, const Arguments&... /*arguments*/) const {}

  void operator()(Call<DeviceCall::kStreamCreate>, Stream* stream,
                  unsigned) const {
    state.Add(*stream);
  }
  void operator()(Call<DeviceCall::kStreamDestroy>, Stream stream) const {
    state.End(stream);
  }
  void operator()(Call<DeviceCall::kEventCreate>, Event* event,
                  unsigned) const {
    state.Add(*event);
  }
  void operator()(Call<DeviceCall::kEventDestroy>, Event event) const {
    state.End(event);
  }
  void operator()(Call<DeviceCall::kDefaultMemPool>, MemPool* pool) const {
    state.Add(*pool, device.ordinal());
  }
  void operator()(Call<DeviceCall::kPoolCreate>, MemPool* pool,
                  const MemProperties&, std::size_t) const {
    state.Add(*pool, device.ordinal());
  }
  void operator()(Call<DeviceCall::kPoolDestroy>, MemPool pool) const {
    state.End(pool);
  }
  void operator()(Call<DeviceCall::kMapRange>, DevicePtr ptr, std::size_t,
                  std::size_t, MemHandle) const {
    state.AddMapped(ptr);
  }
  void operator()(Call<DeviceCall::kUnmapRange>, DevicePtr ptr,
                  std::size_t bytes) const {
    state.EndMapped(ptr, bytes);
  }
  void operator()(Call<DeviceCall::kStreamBeginCapture>, Stream stream,
                  CaptureMode) const {
    state.AddCapture(stream);
  }
  void operator()(Call<DeviceCall::kStreamBeginCaptureToGraph>, Stream stream,
                  Graph, const GraphNode*, std::size_t, CaptureMode) const {
    state.AddCapture(stream);
  }
};

}  // namespace

template <class... Parameters, class... Arguments>
Status FaultingDevice::Try(DeviceCall call,
                           Status (Device::*method)(Parameters...),
                           const Arguments&... arguments) {
  const HeapFailure::Pause pause;
  if (source_ == nullptr || !source_->MayFail()) {
    return (device_.*method)(arguments...);
  }
  for (std::uint64_t nth = 1;; ++nth) {
    const std::string before = source_->Snapshot();
    const std::tuple<OutBytes<Arguments>...> out(
        OutBytes<Arguments>{arguments}...);
    if (!source_->Arm(call, nth)) return (device_.*method)(arguments...);
    const Status status = (device_.*method)(arguments...);
    if (!source_->Disarm(call, status)) return status;
    const bool unchanged = std::apply(
        [](const auto&... one) { return (one.Unchanged() && ...); }, out);
    EXPECT_TRUE(unchanged) << DeviceCallName(call)
                           << " failed and wrote to an out-parameter";
    EXPECT_EQ(before, source_->Snapshot())
        << DeviceCallName(call) << " failed and changed something";
  }
}

template <DeviceCall kCall, class... Parameters>
auto FaultingDevice::Tried(Status (Device::*method)(Parameters...)) {
  return [this, method](const auto&... arguments) {
    const Status status = Try(kCall, method, arguments...);
    if (status == Status::kSuccess) {
      Follower{device_, state_}(Call<kCall>(), arguments...);
    }
    if constexpr (kCall == DeviceCall::kStreamEndCapture) {
      EndCapture(arguments...);
    }
    return status;
  };
}

void FaultingDevice::EndCapture(Stream stream, Graph* /*graph*/) {
  CaptureStatus left = CaptureStatus::kNone;
  if (device_.StreamIsCapturing(stream, &left) == Status::kSuccess &&
      left == CaptureStatus::kNone) {
    state_.EndCapture(stream);
  }
}

#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  Status FaultingDevice::method parameters {                              \
    return Tried<DeviceCall::k##method>(&Device::method) arguments;       \
  }
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

}  // namespace strata
