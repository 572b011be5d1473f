#include "strata/allocation/decorators/fault_allocator.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "strata/allocation/decorators/registry.h"
#include "strata/base/parse_number.h"

namespace strata {
namespace {

template <class Number>
Number NumberOf(const std::string& part, const std::string& value) {
  if (const auto number = ParseNumber<Number>(value)) return *number;
  throw std::invalid_argument("strata_fault: not a number in '" + part + "'");
}

// A well-mixed number from `n`. Source: SplitMix64, Steele et al. 2014.
std::uint64_t Mix(std::uint64_t n) {
  n += 0x9e3779b97f4a7c15U;
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9U;
  n = (n ^ (n >> 27)) * 0x94d049bb133111ebU;
  return n ^ (n >> 31);
}

}  // namespace

FaultPlan FaultPlan::Parse(const std::string& text) {
  FaultPlan plan;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value =
        equals == std::string::npos ? "" : part.substr(equals + 1);
    if (key == "nth") {
      plan.nth = NumberOf<std::uint64_t>(part, value);
    } else if (key == "every") {
      plan.every = NumberOf<std::uint64_t>(part, value);
    } else if (key == "seed") {
      plan.seed = NumberOf<std::uint64_t>(part, value);
    } else if (key == "probability") {
      plan.probability = NumberOf<double>(part, value);
    } else {
      throw std::invalid_argument(
          "strata_fault: unknown part '" + part +
          "' (known: nth=N, every=N, probability=P, seed=N)");
    }
  }
  if (!text.empty() && plan.nth == 0 && plan.every == 0 &&
      plan.probability == 0) {
    throw std::invalid_argument(
        "strata_fault: '" + text +
        "' fails nothing: nth, every or probability is missing or 0");
  }
  if (!(plan.probability >= 0 && plan.probability <= 1)) {
    throw std::invalid_argument(
        "strata_fault: probability must be between 0 and 1");
  }
  return plan;
}

FaultAllocator::FaultAllocator(std::shared_ptr<Allocator> underlying,
                               const FaultPlan& plan)
    : Decorator(std::move(underlying)), plan_(plan) {}

bool FaultAllocator::ShouldFail(std::uint64_t call) const {
  if (call == plan_.nth) return true;
  if (plan_.every != 0 && call % plan_.every == 0) return true;
  if (plan_.probability <= 0) return false;
  const double draw =
      static_cast<double>(Mix(plan_.seed ^ Mix(call)) >> 11) * 0x1.0p-53;
  return draw < plan_.probability;
}

Allocation* FaultAllocator::TryAllocate(const Request& request,
                                        Failure& failure) noexcept {
  if (!ShouldFail(++calls_)) return underlying()->TryAllocate(request, failure);
  ++refused_;
  const PlaceKind kind = place().kind;
  failure = Refusal(kind == PlaceKind::kHost || kind == PlaceKind::kPinned
                        ? Failure::Reason::kHostMemory
                        : Failure::Reason::kDeviceMemory,
                    request, "refused on purpose");
  failure.rounded_bytes = request.bytes;
  return nullptr;
}

Stats FaultAllocator::stats() const {
  Stats stats;
  stats.allocations = calls_ - refused_;
  stats.failures = refused_;
  return stats;
}

std::shared_ptr<Allocator> MakeFaultAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& /*context*/) {
  if (options.fault.empty()) return underlying;
  return std::make_shared<FaultAllocator>(std::move(underlying),
                                          FaultPlan::Parse(options.fault));
}

}  // namespace strata
