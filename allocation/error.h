#ifndef STRATA_ALLOCATION_ERROR_H_
#define STRATA_ALLOCATION_ERROR_H_

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/failure.h"
#include "strata/allocation/stats.h"

namespace strata {

class Allocator;

// The exception for a request that was not met. Holds the failure as data.
class BadAlloc : public std::bad_alloc {
 public:
  explicit BadAlloc(const Failure& failure);

  const char* what() const noexcept override { return text_.c_str(); }
  const Failure& failure() const { return failure_; }

 protected:
  BadAlloc(const Failure& failure, std::string text);

 private:
  Failure failure_;
  std::string text_;
};

// BadAlloc because memory or a limit is exhausted.
class OutOfMemory : public BadAlloc {
 public:
  // Numbers of one layer of the chain when memory ran out.
  struct LayerReport {
    std::string layer;  // Allocator::name()
    Stats stats;
  };

  OutOfMemory(const Failure& failure, std::vector<LayerReport> layers,
              const std::string& advice);

  // Reports of the layers, outermost first.
  const std::vector<LayerReport>& layers() const { return layers_; }
  // One sentence that names a change that would have met the request, if the
  // state proves it; otherwise "".
  const std::string& advice() const { return advice_; }

 private:
  std::vector<LayerReport> layers_;
  std::string advice_;
};

// A device call failed for a reason other than lack of memory.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(const Failure& failure, const std::string& text);
  // "text: InvalidValue (1)".
  DeviceError(const std::string& text, Status status);

  Status status() const { return failure_.status; }
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

// One sentence of advice that the numbers of `failure` prove, or "". It names a
// higher limit if the device has memory for the request.
std::string Advice(const Failure& failure);

// Throws the exception for `failure`: OutOfMemory, BadAlloc, DeviceError or
// std::invalid_argument. The layer reports come from `outermost`.
[[noreturn]] void ThrowFailure(const Failure& failure,
                               const Allocator& outermost);

}  // namespace strata

#endif  // STRATA_ALLOCATION_ERROR_H_
