#include "strata/platform/check/hazard_report.h"

#include <array>
#include <charconv>

namespace strata::check {
namespace {

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
  switch (kind) {
    case HazardKind::kUseAfterFree:
      return "use-after-free";
    case HazardKind::kUseBeforeAlloc:
      return "use-before-alloc";
    case HazardKind::kReuseRace:
      return "reuse-race";
    case HazardKind::kFreeInUse:
      return "free-in-use";
    case HazardKind::kUnmapInUse:
      return "unmap-in-use";
    case HazardKind::kHostReuse:
      return "host-reuse";
    case HazardKind::kAliasIncoherent:
      return "alias-incoherent";
    case HazardKind::kDanglingOperand:
      return "dangling-operand";
    case HazardKind::kGraphUseAfterFree:
      return "graph-use-after-free";
    case HazardKind::kPoolOverlap:
      return "pool-overlap";
    case HazardKind::kCapturedEvent:
      return "captured-event";
    case HazardKind::kOverlap:
      return "overlap";
  }
  return "unknown";
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

}  // namespace strata::check
