#ifndef STRATA_ALLOCATION_DECORATORS_REGISTRY_H_
#define STRATA_ALLOCATION_DECORATORS_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/decorators/decorator_options.h"

namespace strata {

// The decorators of this build (decorators.def), and those that the program
// registered, outermost first.
std::vector<std::string> DecoratorNames();

// Wraps `strategy` in the decorators above a strategy that `options` select.
//
// Errors: std::invalid_argument with the name of the wrong option; also the
//   exceptions of the factories of registered decorators.
std::shared_ptr<Allocator> Decorate(std::shared_ptr<Allocator> strategy,
                                    const DecoratorOptions& options,
                                    const ChainContext& context);

// Wraps `system` in the selected decorators between the chunk pool and the
// system.
std::shared_ptr<Allocator> DecorateSystem(std::shared_ptr<Allocator> system,
                                          const DecoratorOptions& options,
                                          const ChainContext& context);

// The factories, one per line of decorators.def. A factory returns `underlying`
// itself if `options` do not select its layer.
#define STRATA_DECORATOR(name, Class)                                         \
  std::shared_ptr<Allocator> Make##Class(                                     \
      std::shared_ptr<Allocator> underlying, const DecoratorOptions& options, \
      const ChainContext& context);
#define STRATA_SYSTEM_DECORATOR(name, Class) STRATA_DECORATOR(name, Class)
#include "strata/allocation/decorators/decorators.def"
#undef STRATA_SYSTEM_DECORATOR
#undef STRATA_DECORATOR

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_REGISTRY_H_
