#include "strata/tools/peers/tf/tf_bfc_regions.h"

#include <algorithm>
#include <new>
#include <utility>

namespace strata::peers {
namespace {

constexpr unsigned kUnitBits = 8;  // of 256 bytes

}  // namespace

void TfBfcRegions::Add(DevicePtr begin, std::size_t bytes) {
  const std::size_t units = bytes >> kUnitBits;
  Entry entry;
  entry.region = {begin, bytes};
  entry.handles.reset(static_cast<Handle*>(std::calloc(units, sizeof(Handle))));
  if (entry.handles == nullptr) throw std::bad_alloc();
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), entry.region.end(),
                       [](DevicePtr end, const Entry& other) {
                         return end < other.region.end();
                       });
  entries_.insert(after, std::move(entry));
}

void TfBfcRegions::Remove(DevicePtr begin) {
  entries_.erase(std::find_if(
      entries_.begin(), entries_.end(),
      [begin](const Entry& entry) { return entry.region.begin == begin; }));
}

std::vector<TfBfcRegions::Region> TfBfcRegions::List() const {
  std::vector<Region> regions;
  for (const Entry& entry : entries_) regions.push_back(entry.region);
  return regions;
}

TfBfcRegions::Handle TfBfcRegions::HandleOf(DevicePtr address) const {
  const Handle* cell = CellOf(address);
  return cell == nullptr ? kNone : *cell - 1;
}

void TfBfcRegions::SetHandle(DevicePtr address, Handle handle) {
  *CellOf(address) = handle + 1;
}

TfBfcRegions::Handle* TfBfcRegions::CellOf(DevicePtr address) const {
  const auto found = std::upper_bound(entries_.begin(), entries_.end(), address,
                                      [](DevicePtr wanted, const Entry& entry) {
                                        return wanted < entry.region.end();
                                      });
  if (found == entries_.end() || address < found->region.begin) return nullptr;
  return &found->handles[(address - found->region.begin) >> kUnitBits];
}

}  // namespace strata::peers
