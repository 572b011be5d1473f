#include "strata/facade/thread_ends.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "strata/base/log.h"
#include "strata/base/thread_end.h"

namespace strata {
namespace {

struct Note {
  std::shared_ptr<ThreadEnds> ends;
  Stream stream;
};

// The notes of the calling thread; null: none.
thread_local constinit std::vector<Note>* t_notes = nullptr;

}  // namespace

void ThreadEnds::TellAll() noexcept {
  // A callback may watch another stream.
  while (!t_notes->empty()) {
    const Note note = std::move(t_notes->back());
    t_notes->pop_back();
    note.ends->Tell(note.stream);
  }
  delete std::exchange(t_notes, nullptr);
}

void ThreadEnds::Watch(const Stream& stream) {
  static thread_local constinit ThreadEnd end(&TellAll);
  if (end.is_over()) return;
  if (!end.Add()) throw std::bad_alloc();
  if (t_notes == nullptr) t_notes = new std::vector<Note>;
  // Remove the notes of closed facades.
  std::erase_if(*t_notes,
                [](const Note& note) { return note.ends->gate_.is_closed(); });
  const std::shared_ptr<ThreadEnds> self = shared_from_this();
  if (std::none_of(t_notes->begin(), t_notes->end(), [&](const Note& note) {
        return note.ends == self && note.stream == stream;
      })) {
    t_notes->push_back({self, stream});
  }
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
