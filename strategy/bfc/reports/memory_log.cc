#include "strata/strategy/bfc/reports/memory_log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {
namespace {

using ChunkState = BfcSnapshot::ChunkState;

// "3.0 MiB (3145728)".
std::string Exactly(std::size_t bytes) {
  return HumanBytes(bytes) + " (" + std::to_string(bytes) + ")";
}

std::string Counted(std::size_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// Text of the program, as one line of bounded length.
std::string OneLine(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string line(text.substr(0, kMost));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text.size() > kMost ? line + "..." : line;
}

// As many lines as fit. The last line reports how many were omitted.
class Lines {
 public:
  explicit Lines(std::size_t max_lines) : max_lines_(max_lines) {}

  // Whether one more line fits, with room for the last one.
  bool HasRoom() const { return lines_ + 1 < max_lines_; }
  void Add(const std::string& line) {
    if (!HasRoom()) {
      Leave(1);
      return;
    }
    text_ += line + "\n";
    ++lines_;
  }
  // Counts omitted lines.
  void Leave(std::size_t count) { left_out_ += count; }

  std::string Take() {
    if (left_out_ != 0 && max_lines_ != 0) {
      text_ += "and " + Counted(left_out_, "line") +
               " more; a memory map has every chunk\n";
    }
    return std::move(text_);
  }

 private:
  const std::size_t max_lines_;
  std::size_t lines_ = 0;
  std::size_t left_out_ = 0;
  std::string text_;
};

struct Group {
  std::size_t chunks = 0;
  std::size_t bytes = 0;
  std::size_t requested_bytes = 0;
};

// The chunks in use by a key, largest sum of bytes first.
template <class Key, class KeyOf>
std::vector<std::pair<Key, Group>> InUseBy(const BfcSnapshot& snapshot,
                                           KeyOf key_of) {
  std::map<Key, Group> groups;
  for (const ChunkState& chunk : snapshot.chunks) {
    if (!chunk.in_use) continue;
    Group& group = groups[key_of(chunk)];
    ++group.chunks;
    group.bytes += chunk.size;
    group.requested_bytes += chunk.requested_bytes;
  }
  std::vector<std::pair<Key, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.bytes > b.second.bytes;
                   });
  return sorted;
}

void AddRequest(const BfcSnapshot& snapshot, std::size_t rounded_bytes,
                Lines& lines) {
  const auto& numbers = snapshot.numbers;
  std::size_t free_bytes = 0;
  std::size_t free_chunks = 0;
  std::size_t largest = 0;
  for (const ChunkState& chunk : snapshot.chunks) {
    if (chunk.in_use) continue;
    ++free_chunks;
    free_bytes += chunk.size;
    largest = std::max(largest, chunk.size);
  }
  const std::size_t limit = snapshot.memory_limit_bytes;
  const std::size_t pool = numbers.pool_bytes;
  lines.Add(snapshot.allocator_name + " on " + ToString(snapshot.place) +
            ": memory log for a request of " + Exactly(rounded_bytes));
  lines.Add("free: " + Exactly(free_bytes) + " in " +
            Counted(free_chunks, "chunk") + ", the largest " +
            Exactly(largest) + "; fragmentation " +
            std::to_string(Fragmentation(numbers)));
  lines.Add("regions: " + Exactly(pool) + " of " + Exactly(limit) +
            " allowed, " + Exactly(limit - std::min(limit, pool)) +
            " not yet taken; the next region would have " +
            Exactly(snapshot.growth_hint_bytes));
  if (rounded_bytes > limit) {
    lines.Add("the request is larger than the limit");
  } else if (free_bytes >= rounded_bytes && largest < rounded_bytes) {
    lines.Add("the free bytes would do, but no chunk of them is large enough");
  }
}

// The groups with the largest sums, under a line that has the whole sum.
template <class Groups, class NameOf>
void AddGroups(const char* title, const Groups& groups, std::size_t most,
               NameOf name_of, Lines& lines) {
  Group sum;
  for (const auto& [key, group] : groups) {
    sum.chunks += group.chunks;
    sum.bytes += group.bytes;
    sum.requested_bytes += group.requested_bytes;
  }
  const std::size_t shown = std::min(most, groups.size());
  lines.Add(std::string(title) + ", largest " + std::to_string(shown) + " of " +
            std::to_string(groups.size()) + " (in all " +
            Counted(sum.chunks, "chunk") + ", " + Exactly(sum.bytes) +
            ", asked for " + Exactly(sum.requested_bytes) + "):");
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [key, group] = groups[i];
    lines.Add("  " + name_of(key) + ": " + Counted(group.chunks, "chunk") +
              ", " + Exactly(group.bytes));
  }
}

void AddUse(const BfcSnapshot& snapshot, std::size_t most, Lines& lines) {
  const auto sizes = InUseBy<std::size_t>(
      snapshot, [](const ChunkState& chunk) { return chunk.size; });
  AddGroups("sizes in use", sizes, most, &Exactly, lines);
  const auto owners =
      InUseBy<std::string_view>(snapshot, [](const ChunkState& chunk) {
        return std::string_view(chunk.annotation);
      });
  // Without annotations, owners are not distinguishable.
  if (owners.empty() || (owners.size() == 1 && owners[0].first.empty())) return;
  AddGroups(
      "owners", owners, most,
      [](std::string_view owner) {
        return owner.empty() ? std::string("(no annotation)") : OneLine(owner);
      },
      lines);
}

void AddBins(const BfcSnapshot& snapshot, Lines& lines) {
  const BfcBinSummaries bins = SummarizeBins(snapshot);
  for (int i = 0; i < kBfcBins; ++i) {
    const BfcBinSummary& bin = bins[static_cast<std::size_t>(i)];
    lines.Add("bin " + HumanBytes(BfcBinBytes(i)) + ": " +
              Counted(bin.chunks, "chunk") + ", " +
              std::to_string(bin.chunks_in_use) + " in use; " +
              HumanBytes(bin.bytes) + ", " + HumanBytes(bin.bytes_in_use) +
              " in use, asked for " + HumanBytes(bin.requested_bytes_in_use));
  }
}

using Labelled = std::array<std::pair<const char*, std::string>, 8>;

Labelled Labels(const BfcSnapshot::Numbers& numbers) {
  return {{{"Limit", HumanBytes(numbers.bytes_limit)},
           {"InUse", HumanBytes(numbers.bytes_in_use)},
           {"MaxInUse", HumanBytes(numbers.peak_bytes_in_use)},
           {"NumAllocs", std::to_string(numbers.num_allocs)},
           {"MaxAllocSize", HumanBytes(numbers.largest_alloc_size)},
           {"Reserved", HumanBytes(numbers.bytes_reserved)},
           {"PeakReserved", HumanBytes(numbers.peak_bytes_reserved)},
           {"LargestFreeBlock", HumanBytes(numbers.largest_free_block_bytes)}}};
}

// The statistics in two lines.
void AddNumbers(const BfcSnapshot::Numbers& numbers, Lines& lines) {
  std::string line;
  for (const auto& [label, value] : Labels(numbers)) {
    line += (line.empty() ? "" : ", ") + std::string(label) + " " + value;
    if (std::string_view(label) == "NumAllocs") {
      lines.Add(line);
      line.clear();
    }
  }
  lines.Add(line);
}

// One line for the chunk at `index`, in a region with others.
std::string ChunkLine(const BfcSnapshot& snapshot, std::size_t index) {
  const ChunkState& chunk = snapshot.chunks[index];
  std::ostringstream line;
  line << "  " << (chunk.in_use ? "InUse" : "Free ") << " at 0x" << std::hex
       << chunk.address << std::dec << " of size " << chunk.size;
  if (chunk.in_use) line << ", asked for " << chunk.requested_bytes;
  if (chunk.deferred) line << ", freed but not yet reusable";
  if (!chunk.annotation.empty()) line << " by " << OneLine(chunk.annotation);
  if (chunk.step_id >= 0) line << " step " << chunk.step_id;
  if (chunk.action_count != 0) line << " action " << chunk.action_count;
  if (snapshot.has_timing_counter && !chunk.in_use) {
    line << " freed_at_count " << chunk.freed_at_count;
  }
  return line.str();
}

// A neighbour of a chunk: "in use, 256" or "free, 512".
std::string Beside(const ChunkState& chunk) {
  return std::string(chunk.in_use ? "in use, " : "free, ") +
         std::to_string(chunk.size);
}

// The free chunks of the request's bin, each with its neighbours.
void AddBinOfRequest(const BfcSnapshot& snapshot, std::size_t rounded_bytes,
                     Lines& lines) {
  const int bin = BfcBinOf(rounded_bytes);
  lines.Add("Bin for " + Exactly(rounded_bytes) + " was " +
            HumanBytes(BfcBinBytes(bin)) + ", its free chunks:");
  for (const auto& region : snapshot.regions) {
    const std::size_t end = region.first_chunk + region.chunk_count;
    for (std::size_t i = region.first_chunk; i < end; ++i) {
      const ChunkState& chunk = snapshot.chunks[i];
      if (chunk.in_use || BfcBinOf(chunk.size) != bin) continue;
      if (!lines.HasRoom()) {
        lines.Leave(1);
        continue;
      }
      std::string line = ChunkLine(snapshot, i);
      if (i > region.first_chunk) {
        line += ", before it: " + Beside(snapshot.chunks[i - 1]);
      }
      if (i + 1 < end) line += ", after it: " + Beside(snapshot.chunks[i + 1]);
      lines.Add(line);
    }
  }
}

void AddRegions(const BfcSnapshot& snapshot, Lines& lines) {
  for (const auto& region : snapshot.regions) {
    lines.Add("Next region of size " + std::to_string(region.size));
    for (std::size_t i = 0; i < region.chunk_count; ++i) {
      if (!lines.HasRoom()) {
        lines.Leave(region.chunk_count - i);
        break;
      }
      lines.Add(ChunkLine(snapshot, region.first_chunk + i));
    }
  }
}

}  // namespace

std::string DebugString(const BfcSnapshot::Numbers& numbers) {
  std::string text;
  for (const auto& [label, value] : Labels(numbers)) {
    std::array<char, 64> line{};
    std::snprintf(line.data(), line.size(), "%-17s %20s\n",
                  (std::string(label) + ":").c_str(), value.c_str());
    text += line.data();
  }
  return text;
}

std::string MemoryLog(const BfcSnapshot& snapshot, std::size_t rounded_bytes,
                      std::size_t max_lines) {
  Lines lines(max_lines);
  AddRequest(snapshot, rounded_bytes, lines);
  lines.Add(RenderOccupancy(snapshot));
  // With all bins, four of each fit within kMemoryLogLines.
  AddUse(snapshot, std::max<std::size_t>(4, max_lines / 10), lines);
  AddBins(snapshot, lines);
  AddNumbers(snapshot.numbers, lines);
  AddBinOfRequest(snapshot, rounded_bytes, lines);
  AddRegions(snapshot, lines);
  return lines.Take();
}

std::function<void(const BfcSnapshot&)> MakeMemoryLogSink(
    std::size_t max_lines) {
  return [max_lines, count = std::make_shared<std::atomic<int>>(0)](
             const BfcSnapshot& snapshot) {
    if (count->load() >= kMostMemoryLogs || ++*count > kMostMemoryLogs) return;
    try {
      // Line by line: one log message is cut at 30 000 characters.
      std::istringstream log(
          MemoryLog(snapshot, snapshot.refused_bytes, max_lines));
      for (std::string line; std::getline(log, line);) {
        STRATA_LOG(Warning) << line;
      }
    } catch (const std::bad_alloc&) {
      STRATA_LOG(Warning) << "bfc: no host memory for a memory log";
    }
  };
}

}  // namespace strata
