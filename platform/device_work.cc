#include "strata/platform/device_work.h"

#include <algorithm>

#include "strata/platform/device.h"

namespace strata {

Status DeviceWork::Launch(Stream /*stream*/, const WorkRange* /*ranges*/,
                          std::size_t /*count*/, HostKernel /*kernel*/,
                          void* /*argument*/) {
  return Status::kNotSupported;
}

bool IsValidWork(const WorkRange* ranges, std::size_t count) {
  constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  if (count > kMaxWorkRanges || (ranges == nullptr && count != 0)) return false;
  return std::all_of(ranges, ranges + count, [](const WorkRange& range) {
    return range.ptr != 0 && range.ptr % kWordBytes == 0 && range.bytes != 0 &&
           range.bytes % kWordBytes == 0;
  });
}

void NoteUses(Device& device, const Stream& stream, const WorkRange* ranges,
              std::size_t count, std::uint64_t node) {
  if (!device.observed()) return;
  for (std::size_t i = 0; i < count; ++i) {
    CallRecord use = RecordOf(DeviceCall::kUse, ranges[i].ptr, ranges[i].bytes,
                              ranges[i].write ? 1 : 0);
    use.stream_uid = stream.uid;
    use.node = node;
    device.Note(use);
  }
}

}  // namespace strata
