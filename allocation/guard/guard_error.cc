#include "strata/allocation/guard/guard_error.h"

#include <exception>
#include <new>
#include <sstream>
#include <utility>

#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {
namespace {

const char* NameOf(GuardError::Kind kind) {
  switch (kind) {
    case GuardError::Kind::kUnderrun:
      return "underrun";
    case GuardError::Kind::kOverrun:
      return "overrun";
    case GuardError::Kind::kUseAfterFree:
      return "use after free";
    case GuardError::Kind::kDoubleFree:
      break;
  }
  return "double free";
}

}  // namespace

std::string GuardError::ToString() const {
  std::ostringstream text;
  text << NameOf(kind) << " of " << data << " (" << HumanBytes(bytes) << " on "
       << strata::ToString(place) << ")";
  if (changed_bytes != 0) {
    text << ": " << changed_bytes << (changed_bytes == 1 ? " byte" : " bytes")
         << " changed, the first at offset " << offset << ": 0x" << std::hex
         << int{found} << " instead of 0x" << int{expected};
  }
  text << "; allocated by "
       << (allocated_by.empty() ? "(no annotation)" : allocated_by);
  if (!freed_by.empty()) text << "; freed by " << freed_by;
  return text.str();
}

void GuardReporter::AddCallback(Callback callback) {
  const std::lock_guard<std::mutex> guard(mutex_);
  callbacks_.push_back(std::move(callback));
}

void GuardReporter::Report(const GuardError& error) noexcept {
  ++errors_;
  try {
    if (abort_on_error_) STRATA_FATAL << "guard: " << error.ToString();
    STRATA_LOG(Error) << "guard: " << error.ToString();
    std::vector<Callback> callbacks;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      callbacks = callbacks_;
    }
    for (const Callback& callback : callbacks) callback(error);
  } catch (const std::exception& failed) {
    STRATA_LOG(Error) << "guard: reporting an error failed: " << failed.what();
  } catch (...) {
    STRATA_LOG(Error) << "guard: reporting an error failed";
  }
}

void GuardReporter::NoteUnreadable(Place place) noexcept {
  if (unreadable_.exchange(true)) return;
  try {
    STRATA_LOG(Warning)
        << "guard: " << strata::ToString(place)
        << " keeps no data, so that nothing written past or after a "
           "block can be found; double frees are (see "
           "--strata_sim_data)";
  } catch (const std::bad_alloc&) {
    unreadable_ = false;  // logged at the next call
  }
}

void GuardReporter::NoteSkipped(Place place, const char* what,
                                Status status) noexcept {
  if (skipped_++ != 0) return;
  try {
    STRATA_LOG(Error)
        << "guard: " << strata::ToString(place) << ": cannot " << what << ": "
        << status
        << "; the block goes unchecked, as do later ones without a "
           "message";
  } catch (const std::bad_alloc&) {
    // The counter was already increased.
  }
}

}  // namespace strata
