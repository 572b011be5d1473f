#ifndef STRATA_BINDINGS_C_KNOWN_STREAMS_H_
#define STRATA_BINDINGS_C_KNOWN_STREAMS_H_

#include <mutex>
#include <unordered_map>

#include "strata/platform/stream.h"

namespace strata {

// Streams by the driver's handle, of any device.
//
// Threads: any thread.
// Cost: a lock and a hash table.
class KnownStreams {
 public:
  // Without uid if the handle is unknown.
  Stream Find(void* handle) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = streams_.find(handle);
    return found != streams_.end() ? found->second : Stream();
  }
  // Does nothing if the handle is known.
  //
  // Errors: std::bad_alloc.
  void Add(const Stream& stream) {
    const std::lock_guard<std::mutex> guard(mutex_);
    streams_.emplace(stream.handle, stream);
  }
  // Removes `stream`. Does nothing if its handle is unknown, or names another
  // stream by now.
  void Remove(const Stream& stream) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = streams_.find(stream.handle);
    if (found != streams_.end() && found->second == stream) {
      streams_.erase(found);
    }
  }
  // Removes the stream of the handle, if there is one.
  void Remove(void* handle) {
    const std::lock_guard<std::mutex> guard(mutex_);
    streams_.erase(handle);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, Stream> streams_;  // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_BINDINGS_C_KNOWN_STREAMS_H_
