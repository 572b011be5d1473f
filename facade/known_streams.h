#ifndef STRATA_FACADE_KNOWN_STREAMS_H_
#define STRATA_FACADE_KNOWN_STREAMS_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "strata/facade/key_table.h"
#include "strata/platform/stream.h"

namespace strata {

// Streams by the driver's handle, of any device.
//
// Threads: any thread. Finding a stream while it is removed is the caller's
//   error: he uses a stream that he says is destroyed.
// Cost: Find takes two or three cache lines, and a lock only if it finds
//   nothing. What is removed makes room for the next one.
class KnownStreams {
 public:
  // Null if it is not known. Valid until it is removed.
  const Stream* Find(const void* handle) const {
    const std::uint64_t key = KeyOf(handle);
    const Stream* const known = table_.Find(key);
    return known != nullptr ? known : table_.FindLocked(key);
  }
  // Does nothing if the handle is known. Errors: std::bad_alloc.
  void Add(const Stream& stream);
  // Does nothing if the handle is not known.
  void Remove(const void* handle);

 private:
  static std::uint64_t KeyOf(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
  }

  KeyTable<Stream> table_;
  std::mutex mutex_;
  std::deque<Stream> all_;      // guarded by mutex_
  std::vector<Stream*> spare_;  // not in the table; likewise
};

}  // namespace strata

#endif  // STRATA_FACADE_KNOWN_STREAMS_H_
