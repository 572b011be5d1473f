#include "strata/tests/testing/devices/faulted_state.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "strata/platform/sim/device/sim_device.h"

namespace strata {

void FaultedState::Add(MemPool pool, int device) {
  const Pool added{pool, device};
  if (std::find(pools_.begin(), pools_.end(), added) == pools_.end()) {
    Append(pools_, added);
  }
}

void FaultedState::End(const Stream& stream) { std::erase(streams_, stream); }

void FaultedState::End(Event event) { std::erase(events_, event); }

void FaultedState::End(MemPool pool) {
  std::erase_if(pools_, [=](const Pool& one) { return one.pool == pool; });
}

void FaultedState::EndMapped(DevicePtr ptr, std::size_t bytes) {
  std::erase_if(mapped_,
                [=](DevicePtr one) { return one >= ptr && one - ptr < bytes; });
}

std::string FaultedState::Snapshot() const {
  // The calls below must not affect a capture. If the device refuses this call,
  // it refuses all of them.
  CaptureMode mode = CaptureMode::kRelaxed;
  const Status relaxed = sim_->sim_device(0).ThreadExchangeCaptureMode(&mode);
  const std::string state = Text();
  if (relaxed == Status::kSuccess) {
    sim_->sim_device(0).ThreadExchangeCaptureMode(&mode);
  }
  return state;
}

std::string FaultedState::Text() const {
  std::ostringstream out;
  for (int i = 0; i < sim_->device_count(); ++i) out << OfDevice(i);
  for (const Stream& stream : streams_) out << OfStream(stream);
  for (const Stream& stream : captures_) out << OfStream(stream);
  if (captures_.empty()) {
    for (const Event event : events_) {
      out << "event " << event.value << ": "
          << ToString(sim_->sim_device(0).EventQuery(event)) << '\n';
    }
  }
  for (const Pool& pool : pools_) out << OfPool(pool);
  for (const DevicePtr ptr : mapped_) out << OfMapped(ptr);
  return out.str();
}

std::string FaultedState::OfDevice(int ordinal) const {
  SimDevice& device = sim_->sim_device(ordinal);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const Status status = device.MemGetInfo(&free_bytes, &total_bytes);
  std::ostringstream out;
  out << "device " << ordinal << ": " << ToString(status) << ", " << free_bytes
      << " of " << total_bytes << " free, peak " << device.peak_used_bytes()
      << ", live: " << ToString(device.Leaks()) << '\n'
      << OfStream(device.LegacyStream());
  return out.str();
}

std::string FaultedState::OfStream(const Stream& stream) const {
  SimDevice& device = sim_->sim_device(stream.device);
  CaptureInfo info;
  // The device refuses this for the legacy stream during the capture of a
  // blocking stream.
  Status status = device.StreamCaptureInfo(stream, &info);
  if (status == Status::kSuccess && info.status == CaptureStatus::kNone) {
    status = device.StreamQuery(stream);
  }
  std::ostringstream out;
  out << "stream " << stream.uid << " of device " << stream.device << ": "
      << ToString(status);
  if (info.status != CaptureStatus::kNone) {
    out << ", " << (info.status == CaptureStatus::kActive ? "" : "invalidated ")
        << "capture " << info.id << " of graph " << info.graph.value
        << " behind";
    for (const GraphNode node : info.dependencies) out << ' ' << node.value;
  }
  out << '\n';
  return out.str();
}

std::string FaultedState::OfPool(const Pool& pool) const {
  std::ostringstream out;
  out << "pool " << pool.pool.value << ':';
  for (int i = static_cast<int>(PoolAttribute::kReuseFollowEventDependencies);
       i <= static_cast<int>(PoolAttribute::kUsedHigh); ++i) {
    std::uint64_t value = 0;
    const Status status =
        sim_->sim_device(pool.device)
            .PoolGetAttribute(pool.pool, static_cast<PoolAttribute>(i), &value);
    out << ' ' << ToString(status) << ' ' << value;
  }
  out << '\n';
  return out.str();
}

std::string FaultedState::OfMapped(DevicePtr ptr) const {
  std::ostringstream out;
  out << "mapped " << std::hex << ptr << std::dec << ':';
  for (int i = 0; i < sim_->device_count(); ++i) {
    Access access = Access::kNone;
    const Location location{Location::Kind::kDevice, i};
    const Status status = sim_->sim_device(0).GetAccess(ptr, location, &access);
    out << ' ' << ToString(status) << ' ' << static_cast<int>(access);
  }
  out << '\n';
  return out.str();
}

}  // namespace strata
