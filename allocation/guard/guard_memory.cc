#include "strata/allocation/guard/guard_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/host_order.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/allocation/streams/timeline_table.h"

namespace strata {
namespace {

DevicePtr PtrOf(const std::byte* data) {
  return reinterpret_cast<DevicePtr>(data);
}

const std::byte* EndOf(const GuardZone& zone) { return zone.data + zone.bytes; }

// End of the contiguous zones that start with `zone`.
const std::byte* EndOfRun(const GuardZone* zone, const GuardZone* end) {
  const std::byte* run = EndOf(*zone);
  for (++zone; zone != end && zone->data == run; ++zone) run = EndOf(*zone);
  return run;
}

// Stores in `change` the bytes that differ from `zone`. `bytes` is a copy of
// [data, data + count).
void CountChanges(const GuardZone& zone, const std::byte* data,
                  const std::byte* bytes, std::size_t count,
                  GuardChange& change) {
  const std::byte* from = std::max(zone.data, data);
  const std::byte* to = std::min(EndOf(zone), data + count);
  const std::byte value{zone.value};
  if (from >= to) return;
  // If each byte equals its predecessor, all bytes are equal.
  const std::byte* copy = bytes + (from - data);
  if (copy[0] == value &&
      std::memcmp(copy, copy + 1, static_cast<std::size_t>(to - from - 1)) ==
          0) {
    return;
  }
  for (; from < to; ++from) {
    const std::byte found = bytes[from - data];
    if (found == value) continue;
    if (change.count++ == 0) {
      change.first = static_cast<std::size_t>(from - zone.data);
      change.found = static_cast<unsigned char>(found);
    }
  }
}

bool IsOnHost(Place place) {
  return place.kind == PlaceKind::kHost || place.kind == PlaceKind::kPinned;
}

Device* FindDevice(Place place, const std::shared_ptr<Platform>& platform,
                   const std::shared_ptr<ChainStream>& stream) {
  if (IsOnHost(place)) return nullptr;
  if (stream != nullptr && stream->device() != nullptr) return stream->device();
  const bool known =
      platform != nullptr && place.index < platform->device_count();
  return known ? &platform->device(place.index) : nullptr;
}

// Returns an error if work submitted to `stream` becomes part of a graph.
Status NotCapturing(Device& device, Stream stream) {
  if (!device.caps().capture) return Status::kSuccess;
  CaptureStatus capture = CaptureStatus::kNone;
  const Status status = device.StreamIsCapturing(stream, &capture);
  if (status != Status::kSuccess) return status;
  return capture == CaptureStatus::kNone ? Status::kSuccess
                                         : Status::kStreamCaptureUnsupported;
}

// Makes `stream` of `device` wait for the work submitted to `other` of `from`.
Status OrderByEvent(Device& from, Stream other, Device& device, Stream stream) {
  Event event;
  Status status = from.EventCreate(&event, kEventDisableTiming);
  if (status != Status::kSuccess) return status;
  status = from.EventRecord(event, other, 0);
  if (status == Status::kSuccess) {
    status = device.StreamWaitEvent(stream, event, 0);
  }
  // An event may be destroyed while it is pending (cuda_semantics.md E6). If
  // that fails, the event leaks, but the order holds.
  from.EventDestroy(event);
  return status;
}

}  // namespace

GuardMemory::GuardMemory(Place place, std::shared_ptr<Platform> platform,
                         std::shared_ptr<ChainStream> stream,
                         std::shared_ptr<TimelineTable> timelines)
    : place_(place),
      platform_(std::move(platform)),
      stream_(std::move(stream)),
      timelines_(std::move(timelines)),
      on_host_(IsOnHost(place)),
      device_(FindDevice(place, platform_, stream_)),
      readable_(place.kind != PlaceKind::kDevice ||
                (device_ != nullptr && !device_->caps().phantom_memory)),
      buffer_(std::make_unique<std::byte[]>(kPieceBytes)) {}

template <class Act>
Status GuardMemory::InTurn(Act act) const noexcept {
  const auto run = [&](const Turn& turn) {
    // Before any work is submitted that would need a wait.
    const CaptureGate::CallScope scope(
        timelines_ != nullptr ? &timelines_->gate() : nullptr, *device_);
    if (!scope) return Status::kNotReady;
    const Status status = NotCapturing(*device_, turn.stream);
    return status == Status::kSuccess ? act(turn) : status;
  };
  if (stream_ != nullptr && stream_->stream().uid != 0 && !stream_->retired()) {
    const Turn own{stream_->stream(), false};
    StreamTimeline* const timeline = stream_->timeline();
    if (timeline == nullptr) return run(own);
    // The stream is not destroyed while `pass` is held.
    const CallGate::Pass pass = timeline->Use();
    if (pass) return run(own);
  }
  if (stream_ != nullptr) {
    const Status status = stream_->Synchronize();
    if (status != Status::kSuccess) return status;
  }
  return run({device_->PerThreadStream(), true});
}

Status GuardMemory::Await(const Turn& turn) const noexcept {
  const Status status = device_->StreamSynchronize(turn.stream);
  // Another thread may release the block.
  ReleaseHostOrder(*device_);
  return status;
}

Status GuardMemory::Fill(const GuardZone& zone) const noexcept {
  if (zone.bytes == 0) return Status::kSuccess;
  if (on_host_) {
    std::memset(const_cast<std::byte*>(zone.data), zone.value, zone.bytes);
    return Status::kSuccess;
  }
  if (device_ == nullptr) return Status::kInvalidDevice;
  return InTurn([&](const Turn& turn) {
    const Status status = device_->MemsetAsync(PtrOf(zone.data), zone.value,
                                               zone.bytes, turn.stream);
    return status == Status::kSuccess && turn.wait ? Await(turn) : status;
  });
}

Status GuardMemory::Read(const std::byte* data, std::byte* to,
                         std::size_t bytes) const noexcept {
  return InTurn([&](const Turn& turn) {
    const Status status =
        device_->MemcpyAsync(PtrOf(to), PtrOf(data), bytes, turn.stream);
    if (status != Status::kSuccess) return status;
    // A copy to pageable memory is complete when it returns (cuda_semantics.md
    // H6), unless the device can access such memory itself.
    return Await(turn);
  });
}

Status GuardMemory::ComparePieces(const GuardZone* zones, std::size_t count,
                                  GuardChange* changes, std::byte* buffer,
                                  std::size_t buffer_bytes) const noexcept {
  const GuardZone* zone = zones;
  const GuardZone* const end = zones + count;
  const std::byte* at = nullptr;
  while (zone != end) {
    at = std::max(at, zone->data);
    // Bytes between zones belong to the user and may be in use.
    const std::size_t bytes = std::min(
        buffer_bytes, static_cast<std::size_t>(EndOfRun(zone, end) - at));
    if (bytes != 0) {
      const Status status = Read(at, buffer, bytes);
      if (status != Status::kSuccess) return status;
    }
    for (const GuardZone* one = zone; one != end; ++one) {
      CountChanges(*one, at, buffer, bytes, changes[one - zones]);
    }
    at += bytes;
    while (zone != end && EndOf(*zone) <= at) ++zone;
  }
  return Status::kSuccess;
}

Status GuardMemory::Compare(const GuardZone* zones, std::size_t count,
                            GuardChange* changes) noexcept {
  std::fill_n(changes, count, GuardChange());
  if (on_host_) {
    for (std::size_t i = 0; i < count; ++i) {
      CountChanges(zones[i], zones[i].data, zones[i].data, zones[i].bytes,
                   changes[i]);
    }
    return Status::kSuccess;
  }
  if (device_ == nullptr) return Status::kInvalidDevice;
  if (!buffer_taken_.exchange(true, std::memory_order_acquire)) {
    const Status status =
        ComparePieces(zones, count, changes, buffer_.get(), kPieceBytes);
    buffer_taken_.store(false, std::memory_order_release);
    return status;
  }
  std::array<std::byte, 4096> small;
  return ComparePieces(zones, count, changes, small.data(), small.size());
}

bool GuardMemory::IsCapturing() const noexcept {
  const StreamTimeline* timeline =
      stream_ != nullptr ? stream_->timeline() : nullptr;
  if (device_ == nullptr || timeline == nullptr ||
      !timeline->during_capture()) {
    return false;
  }
  const CallGate::Pass pass = timeline->Use();
  return pass && timeline->gate()->IsCapturing(*device_, stream());
}

bool GuardMemory::IsCapturing(Stream other) const noexcept {
  if (timelines_ == nullptr || !timelines_->gate().any()) return false;
  bool is_capturing = false;
  timelines_->WhileThere(other, [&](Device& on) {
    is_capturing = timelines_->gate().IsCapturing(on, other);
  });
  return is_capturing;
}

void GuardMemory::Know(Stream other) const {
  if (timelines_ != nullptr) static_cast<void>(timelines_->Of(other));
}

Status GuardMemory::OrderAfterKnown(Stream other) const noexcept {
  if (timelines_ == nullptr) return OrderAfter(other);
  Status status = Status::kInvalidResourceHandle;
  timelines_->WhileThere(other,
                         [&](Device& /*from*/) { status = OrderAfter(other); });
  return status;
}

Status GuardMemory::OrderAfter(Stream other) const noexcept {
  if (platform_ == nullptr || !platform_->HasDevice(other.device)) {
    return Status::kInvalidDevice;
  }
  Device& from = platform_->device(other.device);
  const CaptureGate::CallScope scope(
      timelines_ != nullptr ? &timelines_->gate() : nullptr, from);
  if (!scope) return Status::kNotReady;
  const Status status = NotCapturing(from, other);
  if (status != Status::kSuccess) return status;
  if (device_ == nullptr) return from.StreamSynchronize(other);
  return InTurn([&](const Turn& turn) {
    return !turn.wait && OrderByEvent(from, other, *device_, turn.stream) ==
                             Status::kSuccess
               ? Status::kSuccess
               : from.StreamSynchronize(other);
  });
}

}  // namespace strata
