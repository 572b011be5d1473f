#ifndef STRATA_PLATFORM_SIMDRIVER_STREAM_LIST_H_
#define STRATA_PLATFORM_SIMDRIVER_STREAM_LIST_H_

#include <cuda.h>

#include <shared_mutex>
#include <unordered_map>

#include "strata/platform/stream.h"

namespace strata::simdriver {

// Priorities of streams on a GPU of compute capability 9.0. The simulated
// device ignores priorities.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

struct StreamRecord {
  Stream stream;
  unsigned flags = 0;
  int priority = 0;
};

// The streams that the program created, by handle.
//
// Model: reads no state of the device, because such a call can invalidate a
//   capture.
// Threads: any.
class StreamList {
 public:
  void Add(const StreamRecord& record);
  void Remove(const Stream& stream);
  // False if there is none.
  bool Find(CUstream handle, StreamRecord* record) const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<void*, StreamRecord> records_;  // guarded by mutex_
};

StreamList& Streams();

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_STREAM_LIST_H_
