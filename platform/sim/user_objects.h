#ifndef STRATA_PLATFORM_SIM_USER_OBJECTS_H_
#define STRATA_PLATFORM_SIM_USER_OBJECTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"

namespace strata {

// A reference to a user object. Its destructor is due when the last one is
// gone.
using UserObjectRef = std::shared_ptr<const void>;

// Objects of callers that graphs keep alive.
//
// Model: a caller has a count of references under the object's handle; graphs,
//   their instances and launches under way have references of their own. When
//   the last of all is gone, the object's destructor is put into a queue, which
//   is emptied at the next call that anyone makes. Handles are never used
//   again.
// Errors: the Status of the Device entry point that each method serves.
// Threads: externally synchronised; references may be dropped under the same
//   lock, and RunDestructors is called without it.
// Source: cuda_semantics.md C29.
class UserObjectTable {
 public:
  UserObjectTable();
  UserObjectTable(const UserObjectTable&) = delete;
  UserObjectTable& operator=(const UserObjectTable&) = delete;

  // An object with one reference, the caller's.
  UserObject Create(int device, void* pointer, HostFunction destroy);
  // kInvalidValue unless the caller has a reference; `move` takes it from the
  // caller.
  Status Retain(UserObject object, bool move, UserObjectRef* reference);
  Status Release(UserObject object);

  // Whether RunDestructors has something to do. Any thread.
  bool has_due() const { return queue_->count.load() != 0; }
  // Takes `mutex` only to empty the queue. Devices refuse calls meanwhile.
  void RunDestructors(std::mutex* mutex);

  // Objects made on `device` whose destructors are not due.
  std::uint64_t live_count(int device) const;

 private:
  struct Due {
    void* pointer;
    HostFunction destroy;
  };
  // Outlives the table for as long as there are references.
  struct Queue {
    std::vector<Due> due;
    std::atomic<std::size_t> count{0};
  };
  struct Entry {
    int device;
    std::uint64_t callers;  // references
    UserObjectRef held;     // while callers is not 0
    std::weak_ptr<const void> alive;
  };

  std::shared_ptr<Queue> queue_;
  std::unordered_map<void*, Entry> entries_;
  std::uintptr_t made_ = 0;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_USER_OBJECTS_H_
