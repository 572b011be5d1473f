#include "strata/tools/trace/skip_log.h"

namespace strata::tools {
namespace {

enum class Unit : std::uint8_t { kRows, kBytes, kOther };

struct KindFacts {
  const char* key;
  Unit unit;
  const char* text;
};

constexpr std::array<KindFacts, kSkipKinds.size()> kFacts = {{
#define STRATA_SKIP_KIND(name, key, unit, text) {key, Unit::unit, text},
#include "strata/tools/trace/skip_kinds.def"
#undef STRATA_SKIP_KIND
}};

const KindFacts& FactsOf(SkipKind kind) {
  return kFacts[static_cast<std::size_t>(kind)];
}

// More than one per cent.
bool IsLarge(std::uint64_t part, std::uint64_t whole) {
  return part > whole / 100;
}

}  // namespace

const char* SkipKindKey(SkipKind kind) { return FactsOf(kind).key; }
const char* SkipKindText(SkipKind kind) { return FactsOf(kind).text; }

void SkipLog::Add(SkipKind kind, std::uint64_t line, std::string_view reason,
                  std::uint64_t count) {
  Skipped& skipped = skipped_[static_cast<std::size_t>(kind)];
  if (skipped.count == 0) {
    skipped.line = line;
    skipped.reason = reason;
  }
  skipped.count += count;
}

void SkipLog::Merge(const SkipLog& other) {
  for (const SkipKind kind : kSkipKinds) {
    const Skipped& more = other.of(kind);
    if (more.count != 0) Add(kind, more.line, more.reason, more.count);
  }
  rows_ += other.rows_;
  bytes_ += other.bytes_;
}

const SkipLog::Skipped* SkipLog::First() const {
  const Skipped* first = nullptr;
  for (const SkipKind kind : kSkipKinds) {
    const Skipped& one = of(kind);
    if (one.count == 0 || FactsOf(kind).unit == Unit::kOther) continue;
    if (first == nullptr || one.line < first->line) first = &one;
  }
  return first;
}

std::uint64_t SkipLog::skipped_rows() const {
  std::uint64_t rows = 0;
  for (const SkipKind kind : kSkipKinds) {
    if (FactsOf(kind).unit == Unit::kRows) rows += of(kind).count;
  }
  return rows;
}

bool SkipLog::IsSuspect() const {
  return IsLarge(skipped_rows(), rows_) ||
         IsLarge(of(SkipKind::kTrailingBytes).count, bytes_);
}

std::string SkipLog::Summary() const {
  std::string text;
  for (const SkipKind kind : kSkipKinds) {
    if (of(kind).count == 0) continue;
    text.append(text.empty() ? "" : ", ").append(SkipKindKey(kind));
    text.append(" ").append(std::to_string(of(kind).count));
  }
  return text;
}

}  // namespace strata::tools
