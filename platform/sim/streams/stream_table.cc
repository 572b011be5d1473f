#include "strata/platform/sim/streams/stream_table.h"

#include <atomic>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/sim/memory/device_windows.h"

namespace strata::sim {
namespace {

constexpr HandleSpace kStreamHandles(0x57);

}  // namespace

std::uint64_t NewStreamUid() {
  static std::atomic<std::uint64_t> next{kLegacyStreamUid + 1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Stream StreamTable::Create() {
  Stream stream;
  if (recycled_.empty()) {
    stream.handle = kStreamHandles.At(device_, handles_made_++);
  } else {
    stream.handle = recycled_.back();
    recycled_.pop_back();
  }
  stream.device = device_;
  stream.uid = NewStreamUid();
  created_.emplace(stream.handle, stream.uid);
  return stream;
}

bool StreamTable::Destroy(const Stream& stream) {
  if (!IsCreated(stream)) return false;
  created_.erase(stream.handle);
  recycled_.push_back(stream.handle);
  return true;
}

std::uint64_t StreamTable::PerThread(std::uint64_t thread, bool* is_new) {
  const auto known = per_thread_.find(thread);
  *is_new = known == per_thread_.end();
  if (!*is_new) return known->second;
  const std::uint64_t uid = NewStreamUid();
  per_thread_.emplace(thread, uid);
  return uid;
}

bool StreamTable::Accepts(const Stream& stream) const {
  if (stream.device != device_) return false;
  return stream.uid == kLegacyStreamUid || IsCreated(stream) ||
         IsOfThisThread(stream);
}

bool StreamTable::Find(void* handle, Stream* stream) const {
  const auto found = created_.find(handle);
  if (found == created_.end()) return false;
  stream->handle = handle;
  stream->device = device_;
  stream->uid = found->second;
  return true;
}

bool StreamTable::IsOfThisThread(const Stream& stream) const {
  const auto own = per_thread_.find(CallingThreadNumber());
  return own != per_thread_.end() && own->second == stream.uid;
}

bool StreamTable::IsCreated(const Stream& stream) const {
  if (stream.device != device_) return false;
  const auto found = created_.find(stream.handle);
  return found != created_.end() && found->second == stream.uid;
}

}  // namespace strata::sim
