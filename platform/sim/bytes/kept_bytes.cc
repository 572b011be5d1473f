#include "strata/platform/sim/bytes/kept_bytes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata {

void KeptBytes::Write(std::uint64_t offset, const char* bytes,
                      std::uint64_t count) {
  Drop({offset, count});
  Add(offset, bytes, count, ages_.end());
  while (bytes_ > kMostBytes) Take(writes_.find(ages_.front()));
}

void KeptBytes::Drop(const PhysicalRun& run) {
  const std::uint64_t end = run.offset + run.bytes;
  auto write = FirstBehind(run.offset);
  while (write != writes_.end() && write->first < end) {
    const std::uint64_t begin = write->first;
    const auto next_age = std::next(write->second.age);
    const std::vector<char> old = Take(write);
    // The bytes on both sides of the run are as old as before.
    if (begin < run.offset) {
      Add(begin, old.data(), run.offset - begin, next_age);
    }
    if (begin + old.size() > end) {
      Add(end, old.data() + (end - begin), begin + old.size() - end, next_age);
    }
    write = FirstBehind(run.offset);
  }
}

std::vector<KeptBytes::Part> KeptBytes::Find(const PhysicalRun& run) const {
  std::vector<Part> parts;
  const std::uint64_t end = run.offset + run.bytes;
  for (auto write = FirstBehind(run.offset);
       write != writes_.end() && write->first < end; ++write) {
    const std::uint64_t begin = std::max(write->first, run.offset);
    const std::uint64_t last =
        std::min(write->first + write->second.bytes.size(), end);
    parts.push_back({begin, write->second.bytes.data() + (begin - write->first),
                     last - begin});
  }
  return parts;
}

KeptBytes::Writes::const_iterator KeptBytes::FirstBehind(
    std::uint64_t offset) const {
  auto write = writes_.upper_bound(offset);
  if (write == writes_.begin()) return write;
  const auto before = std::prev(write);
  return before->first + before->second.bytes.size() > offset ? before : write;
}

void KeptBytes::Add(std::uint64_t offset, const char* bytes,
                    std::uint64_t count, Ages::iterator before) {
  const auto age = ages_.insert(before, offset);
  writes_.emplace(offset, Bytes{{bytes, bytes + count}, age});
  bytes_ += count + kBytesPerWrite;
}

std::vector<char> KeptBytes::Take(Writes::const_iterator write) {
  auto node = writes_.extract(write);
  bytes_ -= node.mapped().bytes.size() + kBytesPerWrite;
  ages_.erase(node.mapped().age);
  return std::move(node.mapped().bytes);
}

}  // namespace strata
