#include "strata/platform/sim/bytes/kept_bytes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata::sim {

void KeptBytes::Write(std::uint64_t offset, const char* bytes,
                      std::uint64_t count) {
  Move({offset, bytes, count, true, true}, offset, bytes);
}

void KeptBytes::Move(const Part& part, std::uint64_t offset,
                     const char* bytes) {
  Drop({offset, part.count});
  Add(offset,
      {{bytes, bytes + part.count}, part.is_whole, part.is_new ? kernels_ : 0},
      ages_.end());
  while (bytes_ > kMostBytes) Take(writes_.find(ages_.front()));
}

void KeptBytes::Drop(const PhysicalRun& run) {
  const std::uint64_t end = run.offset + run.bytes;
  auto write = FirstBehind(run.offset);
  while (write != writes_.end() && write->first < end) {
    const std::uint64_t begin = write->first;
    const auto next_age = std::next(write->second.age);
    const Bytes old = Take(write);
    const auto size = static_cast<std::uint64_t>(old.bytes.size());
    // The bytes on both sides of the run are as old as before.
    const auto keep = [&](std::uint64_t from, std::uint64_t to) {
      if (from >= to) return;
      const char* const bytes = old.bytes.data() + (from - begin);
      Add(from, {{bytes, bytes + (to - from)}, false, old.kernels}, next_age);
    };
    keep(begin, run.offset);
    keep(end, begin + size);
    write = FirstBehind(run.offset);
  }
}

std::vector<KeptBytes::Part> KeptBytes::Find(const PhysicalRun& run) const {
  std::vector<Part> parts;
  const std::uint64_t end = run.offset + run.bytes;
  for (auto write = FirstBehind(run.offset);
       write != writes_.end() && write->first < end; ++write) {
    const Bytes& found = write->second;
    const std::uint64_t begin = std::max(write->first, run.offset);
    const std::uint64_t last = std::min(write->first + found.bytes.size(), end);
    parts.push_back({begin, found.bytes.data() + (begin - write->first),
                     last - begin,
                     found.is_whole && last - begin == found.bytes.size(),
                     found.kernels == kernels_});
  }
  return parts;
}

std::vector<KeptBytes::Part> KeptBytes::FindRead(const PhysicalRun& run) const {
  std::vector<Part> parts = Find(run);
  std::erase_if(parts, [&run](const Part& part) {
    return !part.is_new && (!part.is_whole || part.count != run.bytes ||
                            part.count <= kNumberBytes);
  });
  return parts;
}

KeptBytes::Writes::const_iterator KeptBytes::FirstBehind(
    std::uint64_t offset) const {
  auto write = writes_.upper_bound(offset);
  if (write == writes_.begin()) return write;
  const auto before = std::prev(write);
  return before->first + before->second.bytes.size() > offset ? before : write;
}

void KeptBytes::Add(std::uint64_t offset, Bytes bytes, Ages::iterator before) {
  bytes.age = ages_.insert(before, offset);
  bytes_ += bytes.bytes.size() + kBytesPerWrite;
  writes_.emplace(offset, std::move(bytes));
}

KeptBytes::Bytes KeptBytes::Take(Writes::const_iterator write) {
  auto node = writes_.extract(write);
  bytes_ -= node.mapped().bytes.size() + kBytesPerWrite;
  ages_.erase(node.mapped().age);
  return std::move(node.mapped());
}

}  // namespace strata::sim
