#ifndef STRATA_ALLOCATION_DECORATORS_SHARED_SERVICES_H_
#define STRATA_ALLOCATION_DECORATORS_SHARED_SERVICES_H_

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>

#include "strata/base/require_cxx20.h"

namespace strata {

// State that the layers of a place or of a facade share: one object per type.
//
// Model: the first Get() of a type makes the object, unless the owner of the
//   place or facade has set one. It lives until this object and all layers that
//   hold it are gone.
// Errors: Get() throws the exceptions of the constructor, and nothing changes.
// Threads: any thread. A lock is held while a constructor runs, so a
//   constructor makes no device call and does not call Get().
class SharedServices {
 public:
  template <class Service, class... Args>
  std::shared_ptr<Service> Get(Args&&... args) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = services_.find(typeid(Service));
    if (found != services_.end()) {
      return std::static_pointer_cast<Service>(found->second);
    }
    auto service = std::make_shared<Service>(std::forward<Args>(args)...);
    services_.emplace(typeid(Service), service);
    return service;
  }

  // Call it before any layer asks for the Service. Errors: std::bad_alloc.
  template <class Service>
  void Set(std::shared_ptr<Service> service) {
    const std::lock_guard<std::mutex> guard(mutex_);
    services_[typeid(Service)] = std::move(service);
  }
  // Null if there is none.
  template <class Service>
  std::shared_ptr<Service> Find() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = services_.find(typeid(Service));
    return found != services_.end()
               ? std::static_pointer_cast<Service>(found->second)
               : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::type_index, std::shared_ptr<void>> services_;  // by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_SHARED_SERVICES_H_
