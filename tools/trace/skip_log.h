#ifndef STRATA_TOOLS_TRACE_SKIP_LOG_H_
#define STRATA_TOOLS_TRACE_SKIP_LOG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::tools {

// A reason for which a reader skips a part of a file (skip_kinds.def).
enum class SkipKind : std::uint8_t {
#define STRATA_SKIP_KIND(name, key, unit, text) k##name,
#include "strata/tools/trace/skip_kinds.def"
#undef STRATA_SKIP_KIND
};

inline constexpr std::array kSkipKinds = {
#define STRATA_SKIP_KIND(name, key, unit, text) SkipKind::k##name,
#include "strata/tools/trace/skip_kinds.def"
#undef STRATA_SKIP_KIND
};

// The key in JSON, "unmatched_free".
const char* SkipKindKey(SkipKind kind);
// The text of a warning after the count.
const char* SkipKindText(SkipKind kind);

// The parts of a file that a reader skipped: a count per kind, and the first
// case.
//
// Model: parts are rows (lines, entries), bytes, or other things. Rows are
//   compared with the rows of the file, bytes with its bytes.
class SkipLog {
 public:
  struct Skipped {
    std::uint64_t count = 0;
    std::uint64_t line = 0;  // of the first case; 0: none
    std::string reason;      // of the first case
  };

  void Add(SkipKind kind, std::uint64_t line, std::string_view reason,
           std::uint64_t count = 1);
  void AddRows(std::uint64_t rows) { rows_ += rows; }
  void AddBytes(std::uint64_t bytes) { bytes_ += bytes; }
  void Merge(const SkipLog& other);

  const Skipped& of(SkipKind kind) const {
    return skipped_[static_cast<std::size_t>(kind)];
  }
  bool empty() const { return Summary().empty(); }
  // The kind with the earliest first case in the file, among the kinds of rows
  // or bytes; null if there is none.
  const Skipped* First() const;
  // Rows of the file, including skipped ones.
  std::uint64_t rows() const { return rows_; }
  std::uint64_t skipped_rows() const;
  // Whether more than 1 % of the rows, or of the bytes, were skipped: the
  // result may be wrong.
  bool IsSuspect() const;
  // "unmatched_free 3, cut_row 1"; empty if nothing was skipped.
  std::string Summary() const;

 private:
  std::array<Skipped, kSkipKinds.size()> skipped_;
  std::uint64_t rows_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TRACE_SKIP_LOG_H_
