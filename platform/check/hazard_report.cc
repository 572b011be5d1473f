#include "strata/platform/check/hazard_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>

namespace strata::check {
namespace {

// In the order of HazardKind.
constexpr const char* kKindNames[] = {
    "use-after-free",   "use-before-alloc", "reuse-race",
    "free-in-use",      "unmap-in-use",     "host-reuse",
    "alias-incoherent", "dangling-operand", "graph-use-after-free",
    "pool-overlap",     "captured-event",   "overlap"};
static_assert(std::size(kKindNames) ==
              static_cast<std::size_t>(HazardKind::kOverlap) + 1);

std::string Hex(std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  std::string text("0x");
  text.append(digits.data(), end.ptr);
  return text;
}

void AppendLife(const char* title, const Lifetime& life, std::string* text) {
  text->append("  ").append(title).append(": ").append(Hex(life.ptr));
  text->append(", ").append(std::to_string(life.bytes)).append(" bytes");
  text->append(", allocated by ").append(ToString(life.allocated));
  if (life.freed) {
    text->append(", freed by ").append(ToString(*life.freed));
  } else {
    text->append(", not freed");
  }
  text->append("\n");
}

}  // namespace

const char* HazardKindName(HazardKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::string ToString(const AccessSite& access) {
  std::string text(DeviceCallName(access.call));
  text.append(" (record ").append(std::to_string(access.number));
  if (access.node != 0) text.append(", node ").append(Hex(access.node));
  text.append(")");
  if (access.stream_uid != 0) {
    text.append(" in stream ").append(std::to_string(access.stream_uid));
  }
  text.append(" by thread ").append(std::to_string(access.thread));
  return text;
}

std::string ToString(const HazardReport& report) {
  std::string text(HazardKindName(report.kind));
  text.append(": ").append(std::to_string(report.bytes)).append(" bytes at ");
  text.append(Hex(report.ptr)).append(" of device ");
  text.append(std::to_string(report.second.device)).append("\n  first: ");
  text.append(ToString(report.first)).append("\n  then: ");
  text.append(ToString(report.second)).append("\n");
  if (report.first_life) {
    AppendLife("memory at the first", *report.first_life, &text);
  }
  if (report.second_life) {
    AppendLife("memory at the second", *report.second_life, &text);
  }
  text.append("  missing: ").append(report.missing).append("\n");
  return text;
}

void HazardLog::Add(HazardReport report) {
  const Pair pair{report.kind, report.first.number, report.second.number};
  if (!latest_.empty() && latest_.back().second != pair.second) latest_.clear();
  if (std::find(latest_.begin(), latest_.end(), pair) != latest_.end()) return;
  latest_.push_back(pair);
  ++count_;
  if (handler_) handler_(report);
  if (kept_.size() < kMaxKept) kept_.push_back(std::move(report));
}

}  // namespace strata::check
