#ifndef STRATA_ALLOCATION_GUARD_GUARD_ERROR_H_
#define STRATA_ALLOCATION_GUARD_GUARD_ERROR_H_

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

// An invalid use of memory that the Guard layer detected.
//
// Units: bytes.
struct GuardError {
  enum class Kind : std::uint8_t {
    kUnderrun,      // bytes before the block changed
    kOverrun,       // bytes after the requested size changed
    kUseAfterFree,  // a freed block was written to, or passed to the allocator
    kDoubleFree,    // a freed block was freed again
  };

  Kind kind = Kind::kUnderrun;
  Place place;
  const void* data = nullptr;  // of the block, as returned to the user
  std::size_t bytes = 0;       // requested size
  // Number of changed bytes; 0: no byte is known to have changed.
  std::size_t changed_bytes = 0;
  std::ptrdiff_t offset = 0;  // from `data` to the first changed byte
  unsigned char found = 0;    // its value
  unsigned char expected = 0;
  // Annotations at the allocation and at the free (annotation.h); freed_by is
  // "" while the block is live.
  std::string allocated_by;
  std::string freed_by;

  // "overrun of 0x7000000100 (1000 B on device:0): 1 byte changed, the first at
  // offset 1000: 0x41 instead of 0xba; allocated by step 3: train / MatMul".
  std::string ToString() const;
};

// Result of CheckAll().
struct MemoryCheck {
  std::size_t checked = 0;  // blocks compared
  std::size_t skipped = 0;  // blocks that could not be compared
  std::size_t errors = 0;   // changes found and reported
};

// The receiver of the errors of all Guard layers of a place.
//
// Model: either terminates the process with the error, or logs it and calls the
//   callbacks. Skipped checks are logged once and counted.
// Threads: any thread; no lock is held during a callback.
class GuardReporter {
 public:
  using Callback = std::function<void(const GuardError&)>;

  explicit GuardReporter(bool abort_on_error)
      : abort_on_error_(abort_on_error) {}

  // `callback` may allocate, and may free its own allocations.
  void AddCallback(Callback callback);
  void Report(const GuardError& error) noexcept;

  // Records that memory of `place` cannot be copied back for checks.
  void NoteUnreadable(Place place) noexcept;
  // Records that the action `what` failed for a block.
  void NoteSkipped(Place place, const char* what, Status status) noexcept;

  std::uint64_t errors() const { return errors_; }
  std::uint64_t skipped() const { return skipped_; }

 private:
  const bool abort_on_error_;
  std::atomic<std::uint64_t> errors_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<bool> unreadable_{false};  // NoteUnreadable() was logged
  std::mutex mutex_;
  std::vector<Callback> callbacks_;  // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_GUARD_ERROR_H_
