// The driver calls of VirtualMemoryAllocator.

#include <new>

#include "strata/allocation/streams/host_order.h"
#include "strata/base/log.h"
#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {

using vmm::AddressOf;

Status VirtualMemoryAllocator::Create(GrowthPiece& piece) noexcept {
  piece.handle = new (std::nothrow) PageHandle();
  if (piece.handle == nullptr) return Status::kMemoryAllocation;
  piece.handle->bytes = piece.bytes;
  MemProperties properties;
  properties.location = location_;
  properties.share = may_share_ ? ShareType::kPosixFd : ShareType::kNone;
  properties.rdma = may_rdma_;
  const auto create = [&] {
    return device_->CreateMemory(&piece.handle->memory, piece.bytes,
                                 properties);
  };
  const auto is_refused = [](Status status) {
    return status == Status::kNotSupported || status == Status::kNotPermitted;
  };
  Status status = create();
  // A property that the device refuses is not requested again.
  if (is_refused(status) && properties.share != ShareType::kNone) {
    properties.share = ShareType::kNone;
    may_share_ = false;
    status = create();
  }
  if (is_refused(status) && properties.rdma) {
    properties.rdma = false;
    may_rdma_ = false;
    status = create();
  }
  piece.handle->is_shareable = properties.share != ShareType::kNone;
  if (status != Status::kSuccess) {
    delete piece.handle;
    piece.handle = nullptr;
  }
  return status;
}

Status VirtualMemoryAllocator::Map(std::byte* at,
                                   const PageHandle& handle) noexcept {
  return device_->MapRange(AddressOf(at), handle.bytes, 0, handle.memory);
}

Status VirtualMemoryAllocator::Unmap(std::byte* at,
                                     std::size_t bytes) noexcept {
  AcquireHostOrder(*device_);
  const Status status = device_->UnmapRange(AddressOf(at), bytes);
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << name() << ": " << bytes << " bytes at " << static_cast<void*>(at)
      << " cannot be unmapped (" << status << "); a later release tries again";
  return status;
}

Status VirtualMemoryAllocator::SetAccess(
    std::byte* at, std::size_t bytes,
    const PeerAccess::Grants& grants) noexcept {
  return device_->SetAccess(AddressOf(at), bytes, grants.devices.data(),
                            grants.devices.size());
}

Status VirtualMemoryAllocator::MapPiece(GrowthPiece& piece) noexcept {
  Status status = Status::kSuccess;
  if (piece.is_new()) {
    status = Create(piece);
  } else if (!vmm_.may_alias()) {
    status = UnmapOld(piece);
  }
  if (status != Status::kSuccess) return status;
  status = Map(piece.at, *piece.handle);
  piece.is_mapped = status == Status::kSuccess;
  return status;
}

Status VirtualMemoryAllocator::UnmapOld(GrowthPiece& piece) noexcept {
  const PageHandle& handle = *piece.handle;
  pool().TellOfRange(handle.base, handle.bytes, -1);
  AcquireHostOrder(*device_);
  const Status status =
      device_->UnmapRange(AddressOf(handle.base), handle.bytes);
  if (status == Status::kSuccess) {
    piece.old = GrowthPiece::Old::kGone;
  } else {
    pool().TellOfRange(handle.base, handle.bytes, +1);
  }
  return status;
}

Status VirtualMemoryAllocator::ReleaseMemory(
    const PageHandle& handle) noexcept {
  const Status status = device_->ReleaseMemory(handle.memory);
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << name() << ": " << handle.bytes << " bytes cannot be released ("
      << status << "); a later release tries again";
  return status;
}

void VirtualMemoryAllocator::UndoPiece(GrowthPiece& piece) noexcept {
  if (piece.is_mapped) {
    piece.is_mapped = Unmap(piece.at, piece.bytes) != Status::kSuccess;
  }
  if (piece.is_mapped) {
    // Its addresses retire. Its handle retires too, unless it is mapped
    // elsewhere.
    pool().TellOfRange(piece.at, piece.bytes, +1);
  } else if (!piece.is_new()) {
    if (piece.old == GrowthPiece::Old::kGone) {
      piece.old = MapOldAgain(*piece.handle);
    }
  } else if (piece.handle != nullptr &&
             ReleaseMemory(*piece.handle) == Status::kSuccess) {
    delete piece.handle;
    piece.handle = nullptr;
  }
}

GrowthPiece::Old VirtualMemoryAllocator::MapOldAgain(
    PageHandle& handle) noexcept {
  bool is_mapped = false;
  Status status = Map(handle.base, handle);
  if (status == Status::kSuccess) {
    is_mapped = true;
    const PeerAccess::GrantsPtr grants = peers_->grants();
    status = SetAccess(handle.base, handle.bytes, *grants);
    handle.access_version = grants->version;
  }
  if (status != Status::kSuccess) {
    STRATA_LOG(Error) << name() << ": " << handle.bytes << " bytes at "
                      << static_cast<void*>(handle.base)
                      << " cannot be mapped again (" << status
                      << "); a later release returns them";
    if (is_mapped) {
      is_mapped = Unmap(handle.base, handle.bytes) != Status::kSuccess;
    }
  }
  if (!is_mapped) return GrowthPiece::Old::kGone;
  pool().TellOfRange(handle.base, handle.bytes, +1);
  return status == Status::kSuccess ? GrowthPiece::Old::kUsable
                                    : GrowthPiece::Old::kStuck;
}

Status VirtualMemoryAllocator::MapPieces(
    std::vector<GrowthPiece>& pieces) noexcept {
  Status status = Status::kSuccess;
  for (GrowthPiece& piece : pieces) {
    if (status == Status::kSuccess) status = MapPiece(piece);
  }
  const PeerAccess::GrantsPtr grants = peers_->grants();
  // One call per contiguous run, because it is the most expensive call.
  for (std::size_t i = 0; i < pieces.size() && status == Status::kSuccess;) {
    std::byte* const at = pieces[i].at;
    std::size_t bytes = 0;
    while (i < pieces.size() && pieces[i].at == at + bytes) {
      bytes += pieces[i++].bytes;
    }
    status = SetAccess(at, bytes, *grants);
  }
  if (status == Status::kSuccess) {
    for (const GrowthPiece& piece : pieces) {
      piece.handle->access_version = grants->version;
    }
    return status;
  }
  for (GrowthPiece& piece : pieces) UndoPiece(piece);
  return status;
}

}  // namespace strata
