#include "strata/tools/peers/pytorch/pytorch_peer.h"

#include <iterator>
#include <stdexcept>
#include <utility>

#include "strata/base/size.h"
#include "strata/tools/peers/registry.h"

namespace strata::peers {
namespace {

// Constants of pytorch.md §2.1.
constexpr std::size_t kLeastBlockBytes = 512;
constexpr std::size_t kMostSmallBytes = Mebibytes(1);
constexpr std::size_t kSmallSegmentBytes = Mebibytes(2);
constexpr std::size_t kLargeSegmentBytes = Mebibytes(20);
constexpr std::size_t kLeastOwnSegmentBytes = Mebibytes(10);
constexpr std::size_t kSegmentStepBytes = Mebibytes(2);
// The default of max_non_split_rounding_mb.
constexpr std::size_t kMostUnsplitRestBytes = kLargeSegmentBytes;
constexpr std::size_t kTooManyBytes = std::size_t{1} << 60;

std::size_t SegmentBytes(std::size_t bytes) {
  if (bytes <= kMostSmallBytes) return kSmallSegmentBytes;
  if (bytes < kLeastOwnSegmentBytes) return kLargeSegmentBytes;
  return AlignUp(bytes, kSegmentStepBytes);
}

}  // namespace

bool PytorchPeer::BySize::operator()(const Block* a, const Block* b) const {
  if (a->stream.uid != b->stream.uid) return a->stream.uid < b->stream.uid;
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  return a->address < b->address;
}

bool PytorchPeer::ByAddress::operator()(const Block* a, const Block* b) const {
  if (a->stream.uid != b->stream.uid) return a->stream.uid < b->stream.uid;
  return a->address < b->address;
}

PytorchPeer::PytorchPeer(Device& device, const PytorchSettings& settings,
                         std::string name)
    : device_(device), settings_(settings), name_(std::move(name)) {
  if (settings_.expandable_segments && !device.caps().virtual_memory) {
    throw std::runtime_error(name_ + ": the device has no virtual memory");
  }
  if (settings_.HasCap()) {
    std::size_t free_bytes = 0;
    std::size_t device_bytes = 0;
    RequireSuccess(device_.MemGetInfo(&free_bytes, &device_bytes),
                   DeviceCall::kMemGetInfo);
    cap_bytes_ = static_cast<std::size_t>(settings_.memory_fraction *
                                          static_cast<double>(device_bytes));
  }
  small_.is_small = true;
}

PytorchPeer::~PytorchPeer() {
  live_.ForEach(std::default_delete<Block>());
  for (const Pool* pool : {&small_, &large_}) {
    for (Block* block : pool->free) delete block;
    for (Block* block : pool->unmapped) delete block;
  }
  // A failure shows as a leak of the device.
  for (const DevicePtr address : plain_segments_) device_.MemFree(address);
}

bool PytorchPeer::Allocate(std::size_t bytes, const Stream& stream,
                           PeerBlock* block) {
  if (bytes == 0) {
    *block = PeerBlock{};
    return true;
  }
  if (bytes >= kTooManyBytes) return false;
  Block* found = nullptr;
  {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    const std::size_t rounded = settings_.RoundedBytes(bytes);
    Pool& pool = rounded <= kMostSmallBytes ? small_ : large_;
    found = FindFree(pool, rounded, stream);
    if (found == nullptr) {
      if (settings_.CollectsGarbage()) CollectGarbage();
      found = AddSegment(pool, rounded, stream);
    }
    if (found == nullptr && ReleaseOversize(pool, rounded, stream)) {
      found = AddSegment(pool, rounded, stream);
    }
    if (found == nullptr) {
      // After this the pool is not searched again, although a new free block
      // may fit.
      ReleaseIdle();
      found = AddSegment(pool, rounded, stream);
    }
    if (found == nullptr) return false;
    if (IsInactiveSplit(*found)) {
      stats_.RemovedInactiveSplit(pool.stats_pool(), found->bytes);
    }
    found = Trim(found, rounded);
    MarkInUse(found, bytes);
  }
  live_.Insert(found->address, found);
  *block = {found->address, found->bytes, stream, nullptr};
  return true;
}

void PytorchPeer::MarkInUse(Block* block, std::size_t requested_bytes) {
  block->in_use = true;
  block->requested_bytes = requested_bytes;
  active_.Insert(KeyOf(block), block);
  stats_.Allocated(block->pool->stats_pool(), block->bytes, requested_bytes);
}

void PytorchPeer::Free(const PeerBlock& block) {
  if (block.address == 0) return;
  Block* freed = live_.Take(block.address);
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  active_.Take(KeyOf(freed));
  stats_.Freed(freed->pool->stats_pool(), freed->bytes, freed->requested_bytes);
  freed->in_use = false;
  freed->requested_bytes = 0;
  Merge(freed, freed->previous);
  Merge(freed, freed->next);
  AddFree(freed);
}

void PytorchPeer::AddFree(Block* block) {
  block->searches_before = block->pool->searches;
  block->pool->free.insert(block);
  if (IsInactiveSplit(*block)) {
    stats_.AddedInactiveSplit(block->pool->stats_pool(), block->bytes);
  }
}

void PytorchPeer::Release() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  ReleaseIdle();
}

PeerStats PytorchPeer::stats() const {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return stats_.ForPeer();
}

PytorchStats PytorchPeer::pytorch_stats() const {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return stats_;
}

PytorchPeer::Block* PytorchPeer::FindFree(Pool& pool, std::size_t bytes,
                                          const Stream& stream) {
  ++pool.searches;
  Block key;
  key.stream = stream;
  key.bytes = bytes;
  auto found = pool.free.lower_bound(&key);
  const auto is_ours = [&](auto at) {
    return at != pool.free.end() && (*at)->stream == stream;
  };
  if (!is_ours(found)) return nullptr;
  if (settings_.expandable_segments) {
    // A block that can grow counts with its largest possible size. The best fit
    // is the one with the smallest such size.
    const auto room = [](const Block& block) {
      const bool grows = block.next != nullptr && !block.next->is_mapped;
      return block.bytes + (grows ? block.next->bytes : 0);
    };
    for (auto next = std::next(found);
         is_ours(next) && room(**next) < room(**found); ++next) {
      found = next;
    }
  }
  Block* block = *found;
  if (!MayServe(*block, bytes)) return nullptr;
  pool.free.erase(found);
  return block;
}

bool PytorchPeer::MayServe(const Block& block, std::size_t bytes) const {
  const std::size_t most = settings_.max_split_bytes;
  if (bytes < most) return block.bytes < most;
  return block.bytes - bytes < kMostUnsplitRestBytes;
}

PytorchPeer::Block* PytorchPeer::AddSegment(Pool& pool, std::size_t bytes,
                                            const Stream& stream) {
  // The cap counts a whole plain segment, even if less is mapped.
  if (settings_.HasCap() &&
      reserved_bytes() + SegmentBytes(bytes) > cap_bytes_) {
    return nullptr;
  }
  return settings_.expandable_segments ? AddExpandable(pool, bytes, stream)
                                       : AddPlainSegment(pool, bytes, stream);
}

PytorchPeer::Block* PytorchPeer::AddPlainSegment(Pool& pool, std::size_t bytes,
                                                 const Stream& stream) {
  const std::size_t segment_bytes = SegmentBytes(bytes);
  DevicePtr address = 0;
  if (!FoundMemory(device_.MemAlloc(&address, segment_bytes),
                   DeviceCall::kMemAlloc)) {
    return nullptr;
  }
  return NewPlainSegment(pool, {address, segment_bytes}, stream);
}

PytorchPeer::Block* PytorchPeer::NewPlainSegment(Pool& pool,
                                                 const AddressRange& range,
                                                 const Stream& stream) {
  plain_segments_.insert(range.begin);
  stats_.Reserved(pool.stats_pool(), range.bytes);
  auto block = std::make_unique<Block>();
  block->stream = stream;
  block->bytes = range.bytes;
  block->pool = &pool;
  block->address = range.begin;
  return block.release();
}

PytorchPeer::Block* PytorchPeer::Trim(Block* block, std::size_t bytes) {
  if (!IsWorthSplitting(*block, bytes)) return block;
  Block* front = CutFront(block, bytes);
  AddFree(block);
  return front;
}

PytorchPeer::Block* PytorchPeer::CutFront(Block* block, std::size_t bytes) {
  auto front = std::make_unique<Block>(*block);
  front->bytes = bytes;
  front->next = block;
  if (front->previous != nullptr) front->previous->next = front.get();
  block->previous = front.get();
  block->address += bytes;
  block->bytes -= bytes;
  return front.release();
}

bool PytorchPeer::IsWorthSplitting(const Block& block,
                                   std::size_t bytes) const {
  const std::size_t rest = block.bytes - bytes;
  if (block.pool->is_small || settings_.expandable_segments) {
    return rest >= kLeastBlockBytes;
  }
  return bytes < settings_.max_split_bytes && rest > kMostSmallBytes;
}

void PytorchPeer::Merge(Block* into, Block* from) {
  if (from == nullptr || from->in_use || from->is_mapped != into->is_mapped) {
    return;
  }
  if (into->previous == from) {
    into->address = from->address;
    into->previous = from->previous;
    if (into->previous != nullptr) into->previous->next = into;
  } else {
    into->next = from->next;
    if (into->next != nullptr) into->next->previous = into;
  }
  if (from->segment == nullptr) {
    stats_.RemovedInactiveSplit(from->pool->stats_pool(), from->bytes);
  }
  // Before the merge changes the key of `from`.
  if (from->is_mapped) {
    from->pool->free.erase(from);
  } else {
    from->pool->unmapped.erase(from);
  }
  into->bytes += from->bytes;
  delete from;
}

std::unique_ptr<Peer> MakePytorchPeer(Device& device,
                                      std::string_view switches) {
  PytorchSettings settings;
  std::string name = "peer:pytorch";
  if (!switches.empty()) {
    settings = WithPytorchSwitches(settings, switches);
    name.append(":").append(switches);
  }
  return std::make_unique<PytorchPeer>(device, settings, std::move(name));
}

void CheckPytorchSwitches(std::string_view switches) {
  WithPytorchSwitches({}, switches);
}

std::unique_ptr<Peer> MakePytorchExpandablePeer(Device& device) {
  PytorchSettings settings;
  settings.expandable_segments = true;
  return std::make_unique<PytorchPeer>(device, settings,
                                       "peer:pytorch_expandable");
}

}  // namespace strata::peers
