#include "strata/platform/check/use_rules.h"

#include <algorithm>
#include <utility>

namespace strata::check {
namespace {

bool IsLaunch(const AccessSite& access) {
  return access.call == DeviceCall::kGraphLaunch;
}

HazardReport ReportOf(HazardKind kind, const MemoryUse& first,
                      const AccessSite& second, const ReportedRange& range) {
  HazardReport report;
  report.kind = kind;
  report.first = first.access;
  report.second = second;
  report.first_life = LifeOf(first.life);
  report.ptr = range.ptr;
  report.bytes = range.bytes;
  report.missing = MissingOrder(first, second);
  return report;
}

std::string StreamText(std::uint64_t uid) {
  return std::string("stream ").append(std::to_string(uid));
}

// The text about the marks of a block for the stream of a use.
std::string MarkText(const BlockLife& life, std::uint64_t uid) {
  const bool known = std::find(life.streams.begin(), life.streams.end(), uid) !=
                     life.streams.end();
  const std::string stream = std::to_string(uid);
  if (known) {
    return std::string("; the block's allocator knew of stream ")
        .append(stream)
        .append(" and did not wait for it");
  }
  std::string text("; the block was ");
  if (!life.freed) {
    text.append("in use");
  } else if (life.freed->stream_uid != 0) {
    text.append("freed in ").append(StreamText(life.freed->stream_uid));
  } else {
    text.append("freed");
  }
  return text.append(" without RecordStream(").append(stream).append(")");
}

}  // namespace

std::optional<Lifetime> LifeOf(const std::shared_ptr<BlockLife>& life) {
  if (life == nullptr) return std::nullopt;
  return static_cast<const Lifetime&>(*life);
}

std::string MissingOrder(const MemoryUse& first, const AccessSite& second) {
  const std::uint64_t uid = first.access.stream_uid;
  std::string text;
  if (second.stream_uid == 0) {
    text.append("thread ").append(std::to_string(second.thread));
  } else {
    text.append(StreamText(second.stream_uid));
  }
  text.append(" never waited for ").append(StreamText(uid)).append("'s ");
  text.append(DeviceCallName(first.access.call));
  if (uid != 0 && uid == second.stream_uid && second.node != 0) {
    text.append(", which is no ancestor in the graph");
  }
  if (first.life != nullptr) text.append(MarkText(*first.life, uid));
  return text;
}

void CheckUse(const MemorySegment& segment, const MemoryUse& use,
              const OrderClock& before, const ReportedRange& range,
              const HazardSink& sink) {
  for (const MemoryUse& known : segment.uses) {
    if (known.epoch == use.epoch || before.Covers(known.epoch)) continue;
    HazardKind kind = HazardKind::kReuseRace;
    if (known.life != use.life) {
      if (IsLaunch(known.access) && IsLaunch(use.access)) {
        kind = HazardKind::kPoolOverlap;
      }
    } else {
      const bool is_alias = known.region != use.region;
      const bool is_harmless = !known.write && !use.write;
      if (is_harmless || (!is_alias && !(known.own && use.own))) continue;
      kind = is_alias ? HazardKind::kAliasIncoherent : HazardKind::kPoolOverlap;
    }
    HazardReport report = ReportOf(kind, known, use.access, range);
    report.second_life = LifeOf(use.life);
    sink(std::move(report));
  }
}

void CheckHandOut(const MemorySegment& segment, const AccessSite& hand_out,
                  const OrderClock& before, bool is_host,
                  const ReportedRange& range, const HazardSink& sink) {
  AccessSite second = hand_out;
  if (is_host) second.stream_uid = 0;
  for (const MemoryUse& known : segment.uses) {
    if (before.Covers(known.epoch)) continue;
    sink(ReportOf(is_host ? HazardKind::kHostReuse : HazardKind::kReuseRace,
                  known, second, range));
  }
}

void CheckGivenBack(const MemorySegment& segment, const AccessSite& free,
                    const OrderClock& before, HazardKind kind,
                    std::uint64_t region, const ReportedRange& range,
                    const HazardSink& sink) {
  for (const MemoryUse& known : segment.uses) {
    if (region != 0 && known.region != region) continue;
    if (before.Covers(known.epoch)) continue;
    sink(ReportOf(kind, known, free, range));
  }
}

}  // namespace strata::check
