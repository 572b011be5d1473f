#include <gflags/gflags.h>

#include <cstddef>
#include <iostream>
#include <new>
#include <string>

#include "strata/allocation/decorator.h"
#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"

namespace {

// Finds the layers that are decorators: the types of the library and of the
// program are the same.
class DecoratorCounter final : public strata::AllocatorVisitor {
 public:
  void VisitLayer(const strata::Allocator& layer) override {
    if (dynamic_cast<const strata::Decorator*>(&layer) != nullptr) ++count;
  }
  int count = 0;
};

// The type by which the program catches the failure of a request.
std::string Caught(strata::AllocatorFacade& facade, std::size_t bytes) {
  try {
    facade.Alloc(strata::DevicePlace(0), bytes);
  } catch (const strata::OutOfMemory& error) {
    return error.layers().empty() ? "OutOfMemory without layers"
                                  : "OutOfMemory";
  } catch (const strata::BadAlloc&) {
    return "BadAlloc";
  } catch (const std::bad_alloc&) {
    return "std::bad_alloc";
  }
  return "nothing";
}

}  // namespace

int main(int argc, char** argv) {
  strata::RegisterFlags();
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  strata::AllocatorFacade facade(strata::OptionsFromFlags());
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto allocation = facade.Alloc(strata::DevicePlace(0), kBytes);
  std::cout << facade.options().platform.platform << ": " << allocation->size()
            << " bytes at " << allocation->data() << '\n';
  DecoratorCounter decorators;
  facade.Accept(strata::DevicePlace(0), decorators);
  const std::string large = Caught(facade, std::size_t{1} << 40);
  const std::string huge = Caught(facade, ~std::size_t{0});
  std::cout << decorators.count << " decorators, " << large << ", " << huge
            << '\n';
  return allocation->size() >= kBytes && decorators.count > 0 &&
                 large == "OutOfMemory" && huge == "BadAlloc"
             ? 0
             : 1;
}
