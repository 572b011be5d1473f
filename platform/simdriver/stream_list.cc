#include "strata/platform/simdriver/stream_list.h"

#include <mutex>

namespace strata::simdriver {

void StreamList::Add(const StreamRecord& record) {
  std::unique_lock lock(mutex_);
  records_.insert_or_assign(record.stream.handle, record);
}

void StreamList::Remove(const Stream& stream) {
  std::unique_lock lock(mutex_);
  const auto found = records_.find(stream.handle);
  // Another thread's new stream may have the handle by now.
  if (found != records_.end() && found->second.stream == stream) {
    records_.erase(found);
  }
}

bool StreamList::Find(CUstream handle, StreamRecord* record) const {
  std::shared_lock lock(mutex_);
  const auto found = records_.find(handle);
  if (found == records_.end()) return false;
  *record = found->second;
  return true;
}

StreamList& Streams() {
  static auto* const streams = new StreamList();
  return *streams;
}

}  // namespace strata::simdriver
