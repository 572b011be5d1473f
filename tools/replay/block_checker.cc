#include "strata/tools/replay/block_checker.h"

#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

namespace strata::tools {
namespace {

// The alignment that every device guarantees (cuda_semantics.md H2).
constexpr std::size_t kAlignmentBytes = 256;

[[noreturn]] void Fail(std::uintptr_t address, std::size_t size,
                       const std::string& what) {
  std::ostringstream text;
  text << "the block [0x" << std::hex << address << ", 0x" << address + size
       << ") " << what;
  throw std::runtime_error(text.str());
}

}  // namespace

void BlockChecker::Allocated(const CheckedBlock& block, std::size_t bytes) {
  const auto [address, size] = block;
  if (bytes == 0) {
    if (address != 0) Fail(address, size, "was made for 0 bytes");
    return;
  }
  if (address == 0) Fail(address, size, "is at null");
  if (size < bytes) {
    Fail(address, size,
         "is smaller than the " + std::to_string(bytes) + " bytes asked for");
  }
  if (address % kAlignmentBytes != 0) {
    Fail(address, size,
         "is not aligned to " + std::to_string(kAlignmentBytes) + " bytes");
  }
  const auto [here, is_new] = live_.emplace(address, size);
  const auto next = std::next(here);
  const bool overlaps_next =
      next != live_.end() && next->first - address < size;
  const bool overlaps_previous =
      here != live_.begin() &&
      address - std::prev(here)->first < std::prev(here)->second;
  if (!is_new || overlaps_next || overlaps_previous) {
    Fail(address, size, "overlaps a live one");
  }
}

void BlockChecker::Freeing(const CheckedBlock& block) {
  const auto [address, size] = block;
  if (address == 0) return;
  const auto found = live_.find(address);
  if (found == live_.end() || found->second != size) {
    Fail(address, size, "is not one that was handed out");
  }
  live_.erase(found);
}

}  // namespace strata::tools
