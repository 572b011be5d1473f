#ifndef STRATA_BINDINGS_C_KNOWN_STREAMS_H_
#define STRATA_BINDINGS_C_KNOWN_STREAMS_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "strata/facade/lookup/key_table.h"
#include "strata/platform/stream.h"

namespace strata {

// Streams by the driver's handle, of any device.
//
// Threads: any thread. A lookup of a stream during its removal is an error of
//   the caller: it announced the end of the stream that it uses.
// Cost: Find reads two or three cache lines. It locks only if it finds nothing.
//   Add reuses the memory of removed streams.
class KnownStreams {
 public:
  // Null if the handle is unknown. Valid until Remove.
  const Stream* Find(const void* handle) const {
    const std::uint64_t key = KeyOf(handle);
    const Stream* const known = table_.Find(key);
    return known != nullptr ? known : table_.FindLocked(key);
  }
  // Does nothing if the handle is known.
  //
  // Errors: std::bad_alloc.
  void Add(const Stream& stream);
  // Does nothing if the handle is not known.
  void Remove(const void* handle);
  // Removes `stream`. Does nothing if its handle is unknown, or names another
  // stream by now.
  void Remove(const Stream& stream);

 private:
  // Under mutex_. `stream` is in the table, or null.
  void RemoveLocked(Stream* stream);

  static std::uint64_t KeyOf(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
  }

  KeyTable<Stream> table_;
  std::mutex mutex_;
  std::deque<Stream> all_;      // guarded by mutex_
  std::vector<Stream*> spare_;  // not in the table; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_BINDINGS_C_KNOWN_STREAMS_H_
