#include "strata/tensor/device_context.h"

#include <utility>

namespace strata {
namespace {

bool IsOnDevice(Place place) {
  return place.kind == PlaceKind::kDevice || place.kind == PlaceKind::kManaged;
}

Place PinnedBeside(Place place) {
  return PinnedPlace(place.kind == PlaceKind::kHost ? 0 : place.index);
}

}  // namespace

DeviceContext::DeviceContext(AllocatorFacade& facade, Place place,
                             Stream stream)
    : facade_(facade), place_(place), stream_(stream) {
  facade.GetAllocator(place, stream);  // checks both arguments
}

Allocator& DeviceContext::AllocatorAt(Place place) const {
  return place == place_ ? facade_.GetAllocator(place, stream_)
                         : facade_.GetAllocator(place);
}

Allocator& DeviceContext::GetAllocator() const { return AllocatorAt(place_); }
Allocator& DeviceContext::GetHostAllocator() const {
  return facade_.GetAllocator(HostPlace());
}
Allocator& DeviceContext::GetPinnedAllocator() const {
  return facade_.GetAllocator(PinnedBeside(place_));
}
Allocator& DeviceContext::GetZeroAllocator() const {
  return facade_.GetZeroAllocator(place_);
}
Allocator& DeviceContext::GetHostZeroAllocator() const {
  return facade_.GetZeroAllocator(HostPlace());
}

Place DeviceContext::PlaceFor(const AllocatorAttributes& attributes) const {
  if (!attributes.on_host()) return place_;
  return attributes.gpu_compatible() || attributes.nic_compatible()
             ? PinnedBeside(place_)
             : HostPlace();
}

Allocator& DeviceContext::GetAllocator(
    const AllocatorAttributes& attributes) const {
  return AllocatorAt(PlaceFor(attributes));
}

void* DeviceContext::AllocateAt(Place place, DenseTensor& tensor,
                                DataType dtype, std::size_t requested_bytes,
                                bool fake_alloc) const {
  const bool nothing =
      fake_alloc || (tensor.numel() == 0 && requested_bytes == 0);
  Allocator& source =
      nothing ? facade_.GetZeroAllocator(place) : AllocatorAt(place);
  if (tensor.holder() != nullptr && tensor.place() != place) {
    // Memory at another place is useless; it is freed after the new allocation.
    // A holder of 0 bytes is also removed, because its place would be wrong.
    DenseTensor fresh(tensor.meta());
    fresh.ResetHolder(nullptr);
    void* data = fresh.AllocateFrom(source, dtype, requested_bytes, fake_alloc);
    tensor = std::move(fresh);
    return data;
  }
  if (!tensor.initialized() || !IsOnDevice(place) ||
      facade_.InSameStream(*tensor.holder(), stream_)) {
    return tensor.AllocateFrom(source, dtype, requested_bytes, fake_alloc);
  }
  // Memory of another stream is marked, which may fail. So change a copy first.
  DenseTensor changed = tensor;
  void* data = changed.AllocateFrom(source, dtype, requested_bytes, fake_alloc);
  if (changed.IsSharedWith(tensor)) {
    facade_.RecordStream(*changed.holder(), stream_);
  }
  tensor = std::move(changed);
  return data;
}

void* DeviceContext::Alloc(DenseTensor& tensor, DataType dtype,
                           std::size_t requested_bytes, bool pinned,
                           bool fake_alloc) const {
  return AllocateAt(pinned ? PinnedBeside(place_) : place_, tensor, dtype,
                    requested_bytes, fake_alloc);
}

void* DeviceContext::HostAlloc(DenseTensor& tensor, DataType dtype,
                               std::size_t requested_bytes,
                               bool fake_alloc) const {
  return AllocateAt(HostPlace(), tensor, dtype, requested_bytes, fake_alloc);
}

}  // namespace strata
