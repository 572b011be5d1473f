#ifndef STRATA_ALLOCATION_GUARD_ERROR_H_
#define STRATA_ALLOCATION_GUARD_ERROR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/place.h"
#include "strata/platform/status.h"

namespace strata {

// A misuse of memory that the Guard layer found.
//
// Units: bytes.
struct GuardError {
  enum class Kind : std::uint8_t {
    kUnderrun,      // bytes before the block changed
    kOverrun,       // bytes after what was asked for changed
    kUseAfterFree,  // a freed block was written to, or named to the allocator
    kDoubleFree,    // a freed block was freed again
  };

  Kind kind = Kind::kUnderrun;
  Place place;
  const void* data = nullptr;  // of the block, as its user knows it
  std::size_t bytes = 0;       // as asked for
  std::size_t changed_bytes =
      0;                      // how many; 0: no byte is known to have changed
  std::ptrdiff_t offset = 0;  // from `data` to the first that changed
  unsigned char found = 0;    // its value
  unsigned char expected = 0;
  // What the program was doing (annotation.h); freed_by is "" while live.
  std::string allocated_by;
  std::string freed_by;

  // "overrun of 0x7000000100 (1000 B on device:0): 1 byte changed, the first at
  // offset 1000: 0x41 instead of 0xba; allocated by step 3: train / MatMul".
  std::string ToString() const;
};

// The result of a check on demand.
struct MemoryCheck {
  std::size_t checked = 0;  // blocks compared
  std::size_t skipped = 0;  // blocks that could not be
  std::size_t errors = 0;   // changes found, each of them reported
};

// Where the Guard layers of a place report to.
//
// Model: either ends the process with the error, or logs it and tells the
//   callbacks. What could not be checked is logged once and counted.
// Threads: any thread; no lock is held during a callback.
class GuardReporter {
 public:
  using Callback = std::function<void(const GuardError&)>;

  explicit GuardReporter(bool abort_on_error)
      : abort_on_error_(abort_on_error) {}

  // `callback` may allocate, and free what it allocated.
  void AddCallback(Callback callback);
  void Report(const GuardError& error) noexcept;

  // Copies from the memory of `place` give nothing.
  void NoteUnreadable(Place place) noexcept;
  // `what` could not be done for a block.
  void NoteSkipped(Place place, const char* what, Status status) noexcept;

  std::uint64_t errors() const { return errors_; }
  std::uint64_t skipped() const { return skipped_; }

 private:
  const bool abort_on_error_;
  std::atomic<std::uint64_t> errors_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<bool> unreadable_{false};  // was noted
  std::mutex mutex_;
  std::vector<Callback> callbacks_;  // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_ERROR_H_
