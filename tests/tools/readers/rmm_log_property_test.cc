// Random logs, written in every format that the reader accepts.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/rmm_log.h"

namespace strata::tools {
namespace {

struct Row {
  TraceEvent::Kind kind;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint64_t line;
};

class LogWriter {
 public:
  explicit LogWriter(std::uint64_t seed) : random_(seed) {
    std::shuffle(order_.begin(), order_.end(), random_);
    crlf_ = Chance(2);
  }

  // A log of `count` rows.
  std::string Write(int count) {
    static constexpr std::array<const char*, 7> kNames = {
        "Thread", "Time", "Action", "Pointer", "Size", "Stream", "Note"};
    std::array<std::string, 7> header;
    std::copy(kNames.begin(), kNames.end(), header.begin());
    AddLine(header);
    for (int i = 0; i < count; ++i) {
      if (Chance(20)) {
        Fail();
      } else if (live_.empty() || Chance(2)) {
        Allocate();
      } else {
        Free();
      }
    }
    return text_;
  }

  const std::vector<Row>& rows() const { return rows_; }
  std::uint64_t other_sizes() const { return other_sizes_; }
  std::uint64_t peak_live_bytes() const { return peak_live_bytes_; }

 private:
  bool Chance(std::uint64_t one_in) { return random_() % one_in == 0; }

  std::string Number(std::uint64_t value) {
    if (Chance(2)) return std::to_string(value);
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx",
                  static_cast<unsigned long long>(value));
    return text;
  }

  void Allocate() {
    const std::uint64_t address = (random_() % 5000 + 1) * 256;
    if (live_.count(address) > 0) return Free();
    const std::uint64_t bytes = random_() >> (24 + random_() % 40);
    live_[address] = bytes;
    live_bytes_ += bytes;
    peak_live_bytes_ = std::max(peak_live_bytes_, live_bytes_);
    Add({TraceEvent::Kind::kAllocate, address, bytes, random_() % 5, 0}, bytes);
  }

  void Fail() {
    const std::uint64_t bytes = random_() >> 30;
    peak_live_bytes_ = std::max(peak_live_bytes_, live_bytes_ + bytes);
    Add({TraceEvent::Kind::kTry, 0, bytes, random_() % 5, 0}, bytes);
  }

  void Free() {
    auto block = live_.begin();
    std::advance(block, static_cast<std::ptrdiff_t>(random_() % live_.size()));
    std::uint64_t written = block->second;
    if (Chance(10)) written = 0;
    if (written != block->second) ++other_sizes_;
    Add({TraceEvent::Kind::kFree, block->first, block->second, random_() % 5,
         0},
        written);
    live_bytes_ -= block->second;
    live_.erase(block);
  }

  static const char* ActionOf(TraceEvent::Kind kind) {
    if (kind == TraceEvent::Kind::kTry) return "allocate failure";
    return kind == TraceEvent::Kind::kFree ? "free" : "allocate";
  }

  void Add(Row row, std::uint64_t written_bytes) {
    AddLine({std::to_string(random_() % 3), Chance(2) ? "1:02.5" : "1:02:5",
             ActionOf(row.kind), Number(row.address),
             std::to_string(written_bytes), Number(row.stream), "x"});
    row.line = line_;
    rows_.push_back(row);
  }

  void AddLine(const std::array<std::string, 7>& fields) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      text_ += (i > 0 ? "," : "") + fields[order_[i]];
    }
    text_ += crlf_ ? "\r\n" : "\n";
    ++line_;
  }

  std::mt19937_64 random_;
  std::array<std::size_t, 7> order_ = {0, 1, 2, 3, 4, 5, 6};
  bool crlf_ = false;
  std::string text_;
  std::uint64_t line_ = 0;
  std::vector<Row> rows_;
  std::map<std::uint64_t, std::uint64_t> live_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_live_bytes_ = 0;
  std::uint64_t other_sizes_ = 0;
};

// Expects that `trace` equals the written rows.
void Compare(const Trace& trace, const LogWriter& writer) {
  ASSERT_EQ(trace.events.size(), writer.rows().size());
  std::map<std::uint32_t, std::uint64_t> address_of_slot;
  std::size_t allocates = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Row& row = writer.rows()[i];
    const TraceEvent event = trace.events[i];
    ASSERT_EQ(event.kind(), row.kind) << i;
    ASSERT_LT(event.slot(), trace.slots) << i;
    const std::uint64_t stream = row.stream == 1 ? 0 : row.stream;
    ASSERT_EQ(trace.streams[event.stream()], stream) << i;
    ASSERT_EQ(trace.LineOf(i), row.line) << i;
    if (!event.is_free()) {
      ASSERT_EQ(trace.allocated_bytes[allocates++], row.bytes) << i;
    }
    if (event.is_allocate()) {
      ASSERT_TRUE(address_of_slot.emplace(event.slot(), row.address).second);
    } else if (event.is_free()) {
      ASSERT_EQ(address_of_slot[event.slot()], row.address) << i;
      address_of_slot.erase(event.slot());
    }
  }
  EXPECT_EQ(trace.allocated_bytes.size(), allocates);
  EXPECT_TRUE(trace.skipped.empty());
  EXPECT_EQ(trace.frees_of_other_size, writer.other_sizes());
  EXPECT_EQ(trace.peak_live_bytes, writer.peak_live_bytes());
}

TEST(RmmLogPropertyTest, ReadsBackWhatWasWritten) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LogWriter writer(seed);
    const std::string text = writer.Write(2000);
    const TempFile file;
    if (seed % 2 == 0) {
      file.Write(text);
    } else {
      file.WriteGzip(text);
    }
    Compare(ReadRmmLog(file.path()), writer);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace strata::tools
