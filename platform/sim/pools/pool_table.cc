#include "strata/platform/sim/pools/pool_table.h"

#include <algorithm>

#include "strata/base/size.h"
#include "strata/platform/sim/memory/device_windows.h"

namespace strata::sim {
namespace {

constexpr HandleSpace kPoolHandles(0xB0);

}  // namespace

int DeviceOfPool(MemPool pool) { return kPoolHandles.DeviceOf(pool.value); }

PoolTable::PoolTable(int device, DeviceMemory* memory)
    : device_(device),
      memory_(memory),
      space_(device, memory),
      default_pool_(Create(0, ShareType::kNone)) {}

MemPool PoolTable::Create(std::uint64_t max_bytes, ShareType share) {
  StreamPoolOptions options;
  options.device = device_;
  options.max_bytes = max_bytes;
  options.share = share;
  pools_.push_back(std::make_unique<StreamPool>(options, &space_));
  return AddName(pools_.back().get(), false);
}

MemPool PoolTable::Import(MemPool pool) { return AddName(Find(pool), true); }

MemPool PoolTable::AddName(StreamPool* pool, bool imported) {
  const MemPool handle{kPoolHandles.At(device_, ++handles_made_)};
  handles_.emplace(handle.value, Name{pool, imported});
  return handle;
}

Status PoolTable::Destroy(MemPool pool, const StreamOrder& order) {
  if (pool == default_pool_ || handles_.erase(pool.value) == 0) {
    return Status::kInvalidValue;
  }
  Sweep(order);
  return Status::kSuccess;
}

StreamPool* PoolTable::Find(MemPool pool) const {
  const auto found = handles_.find(pool.value);
  return found == handles_.end() ? nullptr : found->second.pool;
}

bool PoolTable::Owns(MemPool pool) const {
  const auto found = handles_.find(pool.value);
  return found != handles_.end() && !found->second.imported;
}

Status PoolTable::Allocate(StreamPool* pool, std::uint64_t bytes,
                           const Stream& stream, StreamOrder* order,
                           DevicePtr* ptr) {
  Status status = pool->Allocate(bytes, stream, *order, ptr);
  if (status == Status::kSuccess) return status;
  if (MakeRoomIn(pool, bytes, *order)) {
    status = pool->Allocate(bytes, stream, *order, ptr);
    if (status == Status::kSuccess) return status;
  }
  return pool->AllocateWithWaits(bytes, stream, order, ptr);
}

bool PoolTable::Free(DevicePtr ptr, const std::optional<StreamPoint>& point,
                     const StreamOrder& order) {
  if (!point && memory_->marks()) MarkFreedNow(ptr);
  for (const auto& pool : pools_) {
    if (!pool->Free(ptr, point)) continue;
    if (!HasName(pool.get())) Sweep(order);
    return true;
  }
  return false;
}

void PoolTable::OnSynchronize(const StreamOrder& order, WaitedFor waited) {
  for (const auto& pool : pools_) pool->OnSynchronize(order, waited);
  Sweep(order);
}

bool PoolTable::MakeRoom(std::uint64_t bytes, const StreamOrder& order) {
  if (bytes > space_.total_bytes()) return false;
  const std::uint64_t needed = AlignUp(bytes, kFrameBytes);
  const std::uint64_t free_bytes = space_.free_bytes();
  if (free_bytes >= needed || free_bytes + IdleBytes(order) < needed) {
    return false;
  }
  ReleaseUntil(needed, order);
  return true;
}

// Makes room for `pool` to grow by `bytes`, within the limits of the pool and
// the device.
bool PoolTable::MakeRoomIn(StreamPool* pool, std::uint64_t bytes,
                           const StreamOrder& order) {
  if (bytes > space_.total_bytes()) return false;
  const std::uint64_t needed = AlignUp(bytes, kFrameBytes);
  const bool over_limit = pool->room_bytes() < needed;
  if (over_limit &&
      needed - pool->room_bytes() > pool->blocks().IdleBytes(order)) {
    return false;
  }
  if (space_.free_bytes() + IdleBytes(order) < needed) return false;
  while (pool->room_bytes() < needed || space_.free_bytes() < needed) {
    if (!pool->ReleaseChunk(order)) break;
  }
  ReleaseUntil(needed, order);
  return true;
}

void PoolTable::ReleaseUntil(std::uint64_t free_bytes,
                             const StreamOrder& order) {
  for (const auto& pool : pools_) {
    while (space_.free_bytes() < free_bytes && pool->ReleaseChunk(order)) {
    }
  }
}

std::uint64_t PoolTable::IdleBytes(const StreamOrder& order) const {
  std::uint64_t bytes = 0;
  for (const auto& pool : pools_) bytes += pool->blocks().IdleBytes(order);
  return bytes;
}

bool PoolTable::HasName(const StreamPool* pool) const {
  return std::any_of(handles_.begin(), handles_.end(), [&](const auto& entry) {
    return entry.second.pool == pool;
  });
}

// Destroys the pools without a handle, as far as pending work allows.
void PoolTable::Sweep(const StreamOrder& order) {
  for (auto it = pools_.begin(); it != pools_.end();) {
    StreamPool* pool = it->get();
    const bool named = HasName(pool);
    if (!named) pool->TrimTo(0, order);
    it = named || pool->reserved_bytes() != 0 ? it + 1 : pools_.erase(it);
  }
}

std::uint64_t PoolTable::BlockBytes(DevicePtr ptr) const {
  for (const auto& pool : pools_) {
    const std::uint64_t bytes = pool->blocks().BlockBytes(ptr);
    if (bytes != 0) return bytes;
  }
  return 0;
}

std::uint64_t PoolTable::AddMark(DevicePtr ptr, bool fresh) {
  if (!memory_->marks()) return 0;
  marks_.emplace(++marks_made_, Mark{ptr, BlockBytes(ptr), fresh});
  return marks_made_;
}

void PoolTable::RunMark(std::uint64_t number) {
  const auto mark = marks_.find(number);
  if (mark == marks_.end()) return;
  MarkNow(mark->second);
  marks_.erase(mark);
}

void PoolTable::MarkFreedNow(DevicePtr ptr) {
  const Mark now{ptr, BlockBytes(ptr), false};
  if (now.bytes == 0) return;
  std::erase_if(marks_, [&](const auto& entry) {
    const Mark& mark = entry.second;
    return mark.ptr < ptr + now.bytes && ptr < mark.ptr + mark.bytes;
  });
  MarkNow(now);
}

void PoolTable::MarkNow(const Mark& mark) {
  const DevicePtr end = mark.ptr + mark.bytes;
  for (DevicePtr ptr = mark.ptr; ptr < end;) {
    const auto place = Locate(ptr);
    if (!place) return;  // the program freed it too early
    PhysicalRun run = place->run;
    run.bytes = std::min(run.bytes, end - ptr);
    if (mark.fresh) {
      memory_->NoteFresh(run);
    } else {
      memory_->NoteFreed(run);
    }
    ptr += run.bytes;
  }
}

bool PoolTable::IsLive(DevicePtr ptr, std::uint64_t bytes) const {
  return std::any_of(pools_.begin(), pools_.end(), [&](const auto& pool) {
    return pool->blocks().Covers(ptr, bytes);
  });
}

bool PoolTable::AwaitsFree(DevicePtr ptr, std::uint64_t bytes,
                           const StreamOrder& order) const {
  return std::any_of(pools_.begin(), pools_.end(), [&](const auto& pool) {
    return pool->blocks().CoversFreed(ptr, bytes, order);
  });
}

std::optional<Access> PoolTable::AccessOf(DevicePtr ptr, std::uint64_t bytes,
                                          int device) const {
  const auto range = Resolve(ptr, bytes);
  if (!range) return std::nullopt;
  return range->pool->AccessOf(device);
}

std::optional<MappedMemory::Place> PoolTable::Locate(DevicePtr ptr) const {
  const auto range = Resolve(ptr, 1);
  if (!range) return std::nullopt;
  return Place{device_,
               memory_->Locate(range->chunk->share, ptr - range->chunk->ptr)};
}

std::optional<PoolTable::PoolRange> PoolTable::Resolve(
    DevicePtr ptr, std::uint64_t bytes) const {
  for (const auto& pool : pools_) {
    const PoolChunk* chunk = pool->blocks().FindChunk(ptr, bytes);
    if (chunk != nullptr) return PoolRange{pool.get(), chunk};
  }
  return std::nullopt;
}

std::uint64_t PoolTable::live_count() const {
  std::uint64_t count = 0;
  for (const auto& pool : pools_) count += pool->blocks().live_count();
  return count;
}

std::uint64_t PoolTable::live_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& pool : pools_) bytes += pool->blocks().live_bytes();
  return bytes;
}

}  // namespace strata::sim
