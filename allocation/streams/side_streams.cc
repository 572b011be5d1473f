#include "strata/allocation/streams/side_streams.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "strata/base/log.h"

namespace strata {

SideStreams::SideStreams(Device& device) : device_(device) {}

SideStreams::~SideStreams() { End(); }

void SideStreams::End() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    const Status status = device_.StreamDestroy(sides_[i].stream);
    // A driver that is shutting down destroys its streams itself.
    STRATA_LOG_IF(Error, status != Status::kSuccess &&
                             status != Status::kContextIsDestroyed)
        << "cannot destroy a stream: " << status;
  }
  count_ = 0;
}

SideStreams::Key SideStreams::With(Key key, const Stream& stream) noexcept {
  // Two sets with the same key share a stream, which only causes a delay. The
  // bits are mixed by the finaliser of splitmix64 (Steele, Lea, Flood: Fast
  // Splittable Pseudorandom Number Generators, OOPSLA 2014).
  Key bits = stream.uid + (static_cast<Key>(stream.device) << 48);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  const Key sum = key + (bits ^ (bits >> 31));
  return sum != kNone ? sum : 1;
}

SideStreams::Side* SideStreams::Find(Key key) noexcept {
  const auto end = sides_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto found = std::find_if(
      sides_.begin(), end, [key](const Side& side) { return side.key == key; });
  return found != end ? &*found : nullptr;
}

SideStreams::Side* SideStreams::LastUsed() noexcept {
  const auto end = sides_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto found = std::max_element(
      sides_.begin(), end,
      [](const Side& a, const Side& b) { return a.used < b.used; });
  return found != end ? &*found : nullptr;
}

Stream SideStreams::Use(Side& side) noexcept {
  side.used = ++uses_;
  return side.stream;
}

Stream SideStreams::Of(Key key, const CaptureGate* gate) noexcept {
  bool has_room = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    Side* const side = Find(key);
    if (side != nullptr) return Use(*side);
    has_room = count_ < kMost;
  }
  const Stream stream = has_room ? Create(key) : TakeOver(key, gate);
  if (stream.uid != 0) return stream;
  const std::lock_guard<SpinLock> guard(lock_);
  Side* const last = LastUsed();
  return last != nullptr ? Use(*last) : Stream();
}

Stream SideStreams::Create(Key key) noexcept {
  Stream made;
  const Status status = device_.StreamCreate(&made, kStreamNonBlocking);
  if (status != Status::kSuccess) {
    STRATA_LOG(Error) << "cannot create a stream (" << status
                      << "); using another one, or waiting instead";
    return Stream();
  }
  Stream kept;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    Side* side = Find(key);
    if (side == nullptr && count_ < kMost) {
      side = &sides_[count_++];
      side->stream = made;
      side->key = key;
    }
    if (side != nullptr) kept = Use(*side);
  }
  // Another thread may have created it first.
  if (kept != made) device_.StreamDestroy(made);
  return kept;
}

Stream SideStreams::TakeOver(Key key, const CaptureGate* gate) noexcept {
  std::optional<CaptureGate::Calm> calm;
  if (gate != nullptr && !calm.emplace(*gate)) return Stream();
  std::array<Side, kMost> sides;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    sides = sides_;  // all kMost are valid
  }
  const auto last = sides.begin() + kAsked;
  std::partial_sort(
      sides.begin(), last, sides.end(),
      [](const Side& a, const Side& b) { return a.used < b.used; });
  const auto idle = std::find_if(sides.begin(), last, [this](const Side& side) {
    return device_.StreamQuery(side.stream) == Status::kSuccess;
  });
  if (idle == last) return Stream();
  const std::lock_guard<SpinLock> guard(lock_);
  Side* const side = Find(idle->key);
  // Another thread may have taken it first.
  if (side == nullptr || side->stream != idle->stream) return Stream();
  side->key = key;
  return Use(*side);
}

std::size_t SideStreams::List(
    std::array<Stream, kMost>& streams) const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  for (std::size_t i = 0; i < count_; ++i) streams[i] = sides_[i].stream;
  return count_;
}

bool SideStreams::Has(const Stream& stream) const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  const auto end = sides_.begin() + static_cast<std::ptrdiff_t>(count_);
  return std::any_of(sides_.begin(), end,
                     [&](const Side& side) { return side.stream == stream; });
}

}  // namespace strata
