#include "strata/strategy/bfc/reports/memory_map.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <locale>
#include <memory>
#include <mutex>
#include <new>
#include <sstream>
#include <utility>

#include "strata/base/json_text.h"
#include "strata/base/log.h"
#include "strata/platform/place.h"

namespace strata {
namespace {

// Like "GPU_0_bfc" of the original.
std::string FullName(const BfcSnapshot& snapshot) {
  return ToString(snapshot.place) + "_" + snapshot.allocator_name;
}

void WriteBins(const BfcSnapshot& snapshot, std::ostream& out) {
  const BfcBinSummaries bins = SummarizeBins(snapshot);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    out << R"({"bin_summary":{"bin":)" << i << R"(,"total_bytes_in_use":)"
        << bins[i].bytes_in_use << R"(,"total_bytes_in_bin":)" << bins[i].bytes
        << R"(,"total_chunks_in_use":)" << bins[i].chunks_in_use
        << R"(,"total_chunks_in_bin":)" << bins[i].chunks << "}}\n";
  }
}

void WriteChunks(const BfcSnapshot& snapshot, std::ostream& out) {
  for (const auto& chunk : snapshot.chunks) {
    out << R"({"chunk":{"address":)" << chunk.address << R"(,"size":)"
        << chunk.size << R"(,"requested_size":)" << chunk.requested_bytes
        << R"(,"bin":)" << chunk.bin << R"(,"op_name":)"
        << JsonString(chunk.op_name);
    if (snapshot.has_timing_counter) {
      out << R"(,"freed_at_count":)"
          << (chunk.in_use ? 0 : chunk.freed_at_count);
    }
    out << R"(,"action_count":)" << chunk.action_count << R"(,"in_use":)"
        << (chunk.in_use ? "true" : "false")
        << (chunk.deferred ? R"(,"deferred":true)" : "") << R"(,"step_id":)"
        << chunk.step_id << R"(,"annotation":)" << JsonString(chunk.annotation)
        << "}}\n";
  }
}

void WriteStats(const BfcSnapshot::Numbers& numbers, std::ostream& out) {
  out << R"({"stats":{"num_allocs":)" << numbers.num_allocs
      << R"(,"bytes_in_use":)" << numbers.bytes_in_use
      << R"(,"peak_bytes_in_use":)" << numbers.peak_bytes_in_use
      << R"(,"largest_alloc_size":)" << numbers.largest_alloc_size
      << R"(,"fragmentation_metric":)" << Fragmentation(numbers) << "}}\n";
}

std::string FileNamePart(const std::string& text) {
  std::string part;
  for (const char c : text) {
    const bool keeps = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       c == '-' || c == '.';
    part += keeps ? c : '_';
  }
  return part;
}

// Errors: std::bad_alloc.
std::string TextOf(const BfcSnapshot& snapshot) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  WriteMemoryMap(snapshot, text);
  // An ostringstream without memory drops text and reports no error by itself.
  if (!text.good()) throw std::bad_alloc();
  return text.str();
}

// The state that the copies of a sink share.
class MapFiles {
 public:
  explicit MapFiles(std::string prefix) : prefix_(std::move(prefix)) {}

  void Write(const BfcSnapshot& snapshot) {
    Outcome outcome;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      outcome = WriteLocked(snapshot);
    }
    // Without the lock, because a log sink may allocate.
    STRATA_LOG_IF(Error, outcome.error != 0)
        << "bfc_memory_map_prefix: cannot write '" << outcome.path
        << "': " << std::strerror(outcome.error);
    STRATA_LOG_IF(Warning, outcome.is_written)
        << "bfc: memory exhausted; a memory map is in '" << outcome.path << "'";
    STRATA_LOG_IF(Warning, outcome.is_last)
        << "bfc: that is the last memory map of " << kMostMemoryMaps;
  }

 private:
  // Parts of a log message. The message takes no memory, because there may be
  // none left.
  struct Outcome {
    std::string path;
    int error = 0;  // errno of the first file that was not written
    bool is_written = false;
    bool is_last = false;
  };

  // Hold mutex_.
  Outcome WriteLocked(const BfcSnapshot& snapshot) {
    Outcome outcome;
    if (written_ == kMostMemoryMaps) return outcome;
    const std::string stem =
        prefix_ + "_" + FileNamePart(FullName(snapshot)) + ".";
    // Before the file is created, so that no empty file stays if the host is
    // out of memory.
    const std::string map = TextOf(snapshot);
    std::FILE* file = Create(stem, outcome.path);
    const bool whole = file != nullptr && std::fwrite(map.data(), 1, map.size(),
                                                      file) == map.size();
    if (file == nullptr || std::fclose(file) != 0 || !whole) {
      if (!std::exchange(complained_, true)) outcome.error = errno;
      if (file != nullptr) std::remove(outcome.path.c_str());
      return outcome;
    }
    outcome.is_written = true;
    outcome.is_last = ++written_ == kMostMemoryMaps;
    return outcome;
  }

  // Creates a new file and sets `path`; null if that fails.
  std::FILE* Create(const std::string& stem, std::string& path) {
    while (true) {
      path = stem + std::to_string(next_);
      std::FILE* file = std::fopen(path.c_str(), "wx");
      if (file == nullptr && errno != EEXIST) return nullptr;
      ++next_;
      if (file != nullptr) return file;
    }
  }

  const std::string prefix_;
  std::mutex mutex_;
  int next_ = 0;             // The next number to try; guarded by mutex_.
  int written_ = 0;          // Files; guarded by mutex_.
  bool complained_ = false;  // guarded by mutex_
};

}  // namespace

void WriteMemoryMap(const BfcSnapshot& snapshot, std::ostream& out) {
  out << R"({"allocator_name":)" << JsonString(FullName(snapshot)) << "}\n";
  WriteBins(snapshot, out);
  WriteChunks(snapshot, out);
  for (const auto& point : snapshot.size_history) {
    out << R"({"snap_shot":{"action_count":)" << point.action_count
        << R"(,"size":)" << point.in_use_bytes << "}}\n";
  }
  WriteStats(snapshot.numbers, out);
}

MemoryMapSink MakeMemoryMapSink(const std::string& prefix) {
  return [files =
              std::make_shared<MapFiles>(prefix)](const BfcSnapshot& snapshot) {
    try {
      files->Write(snapshot);
    } catch (const std::exception& error) {
      // The host has no memory for the text. The failure itself is still
      // reported as usual.
      STRATA_LOG(Error) << "bfc: no memory map: " << error.what();
    }
  };
}

}  // namespace strata
