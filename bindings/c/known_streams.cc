#include "strata/bindings/c/known_streams.h"

namespace strata {

void KnownStreams::Add(const Stream& stream) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::uint64_t key = KeyOf(stream.handle);
  if (table_.FindLocked(key) != nullptr) return;
  if (spare_.empty()) {
    all_.emplace_back();
    // Remove never allocates. Reserve twice the size, because reserve()
    // allocates exactly the requested capacity.
    if (spare_.capacity() < all_.size()) spare_.reserve(2 * all_.size());
    spare_.push_back(&all_.back());
  }
  *spare_.back() = stream;
  table_.Insert(key, spare_.back());
  spare_.pop_back();
}

void KnownStreams::Remove(const void* handle) {
  const std::lock_guard<std::mutex> guard(mutex_);
  RemoveLocked(table_.FindLocked(KeyOf(handle)));
}

void KnownStreams::Remove(const Stream& stream) {
  const std::lock_guard<std::mutex> guard(mutex_);
  Stream* const known = table_.FindLocked(KeyOf(stream.handle));
  if (known != nullptr && *known == stream) RemoveLocked(known);
}

void KnownStreams::RemoveLocked(Stream* stream) {
  if (stream == nullptr) return;
  table_.Remove(KeyOf(stream->handle));
  spare_.push_back(stream);
}

}  // namespace strata
