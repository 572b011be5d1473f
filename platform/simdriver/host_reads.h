#ifndef STRATA_PLATFORM_SIMDRIVER_HOST_READS_H_
#define STRATA_PLATFORM_SIMDRIVER_HOST_READS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/sim/bytes/kept_bytes.h"

namespace strata::simdriver {

// Copies from the device to the host, by the line of Python that made them.
//
// Model: a copy counts when it runs, also at each launch of a graph. If the
//   thread holds Python's lock, its innermost line is the place. PyTorch
//   releases the lock before most copies. Then copies of the main thread count
//   at the line where Python next runs pending calls. This is usually the line
//   of the copy. Copies of other threads have no place.
// Threads: any thread.
class HostReads {
 public:
  // Number of lines with a count of their own. Copies at further lines have no
  // place.
  static constexpr std::size_t kMostPlaces = 4096;

  struct Place {
    std::string line;  // "train.py:12"
    std::uint64_t all = 0;
    std::uint64_t written = 0;  // as ReadCounter

    // Copies of unknown bytes.
    std::uint64_t unknown() const { return all - std::min(written, all); }
  };

  // The counter for a copy that the calling thread submits now. It exists for
  // ever. The caller holds no lock.
  sim::ReadCounter* Here();
  // Called when a copy was submitted with the result of Here.
  void AfterCopy(const sim::ReadCounter* counter);
  // Called when the thread has waited for work, such as copies.
  void AfterWait();

  // The sums over all copies; `line` is empty.
  Place Total() const;
  // The copies that have no place.
  Place WithoutLine() const;
  // The places of most copies of unknown bytes, at most `count`.
  std::vector<Place> MostFrequent(std::size_t count) const;

 private:
  // Queues PlaceUnplaced in Python unless it is queued.
  void PlaceSoon();
  // Moves the copies of unplaced_ to the line that Python runs now.
  static int PlaceUnplaced(void*);
  // Null if there are too many places.
  sim::ReadCounter* At(const std::string& line);

  mutable std::mutex mutex_;
  std::map<std::string, sim::ReadCounter> places_;  // guarded by mutex_
  sim::ReadCounter
      unplaced_;  // of the main thread, until Python names the line
  sim::ReadCounter elsewhere_;          // without a place
  std::atomic<bool> is_called_{false};  // PlaceUnplaced is in Python's queue
};

HostReads& Reads();

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_HOST_READS_H_
