#include "strata/platform/host/processor.h"

#include <array>
#include <cstring>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace strata {
namespace {

constexpr unsigned kFamilyOfZen5 = 26;

bool AskThisOne() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  const std::array<unsigned, 3> words = {ebx, edx, ecx};
  std::array<char, sizeof(words)> vendor{};
  std::memcpy(vendor.data(), words.data(), vendor.size());
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  // The extended family counts only if the family is the largest value.
  constexpr unsigned kLargest = 15;
  unsigned family = (eax >> 8) & kLargest;
  if (family == kLargest) family += (eax >> 20) & 0xff;
  return IsFasterWithOwnedLocks({{vendor.data(), vendor.size()}, family});
#else
  return false;
#endif
}

}  // namespace

bool IsFasterWithOwnedLocks(const ProcessorModel& model) noexcept {
  if (model.vendor == "GenuineIntel") return true;
  return model.vendor == "AuthenticAMD" && model.family >= kFamilyOfZen5;
}

bool IsFasterWithOwnedLocks() noexcept {
  static const bool is_faster = AskThisOne();
  return is_faster;
}

}  // namespace strata
