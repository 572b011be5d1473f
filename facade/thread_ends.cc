#include "strata/facade/thread_ends.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "strata/base/log.h"
#include "strata/base/thread_end.h"

namespace strata {
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
  }

  // The notes of the calling thread; null: none.
  static thread_local constinit Notes* t_own;

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

thread_local constinit ThreadEnds::Notes* ThreadEnds::Notes::t_own = nullptr;

void ThreadEnds::Watch(const Stream& stream) {
  static thread_local constinit ThreadEnd end([]() noexcept {
    // A callback may watch another stream: the notes are still there.
    delete Notes::t_own;
    Notes::t_own = nullptr;
  });
  if (end.is_over()) return;
  if (!end.Add()) throw std::bad_alloc();
  if (Notes::t_own == nullptr) Notes::t_own = new Notes;
  Notes::t_own->Add(shared_from_this(), stream);
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
