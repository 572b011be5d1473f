#include "strata/facade/thread_ends.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "strata/base/log.h"

namespace strata {
namespace {

// The calling thread has notified its facades, and has no notes any more.
thread_local constinit bool t_has_told = false;

}  // namespace

// The notes of one thread.
class ThreadEnds::Notes {
 public:
  ~Notes() {
    // A callback may watch another stream.
    while (!notes_.empty()) {
      const Note note = std::move(notes_.back());
      notes_.pop_back();
      note.ends->Tell(note.stream);
    }
    t_has_told = true;
  }

  void Add(std::shared_ptr<ThreadEnds> ends, const Stream& stream) {
    // Remove the notes of closed facades.
    std::erase_if(
        notes_, [](const Note& note) { return note.ends->gate_.is_closed(); });
    const auto is_same = [&](const Note& note) {
      return note.ends == ends && note.stream == stream;
    };
    if (std::any_of(notes_.begin(), notes_.end(), is_same)) return;
    notes_.push_back({std::move(ends), stream});
  }

 private:
  struct Note {
    std::shared_ptr<ThreadEnds> ends;
    Stream stream;
  };

  std::vector<Note> notes_;
};

void ThreadEnds::Watch(const Stream& stream) {
  if (t_has_told) return;
  thread_local Notes notes;
  notes.Add(shared_from_this(), stream);
}

void ThreadEnds::Tell(const Stream& stream) noexcept {
  const CallGate::Pass pass(gate_);
  if (!pass) return;
  try {
    ended_(stream);
  } catch (const std::exception& error) {
    STRATA_LOG(Error) << "the end of a thread's stream (" << stream.uid
                      << ") is not noticed: " << error.what();
  }
}

}  // namespace strata
