#ifndef STRATA_TESTS_TESTING_SCOPED_VARIABLE_H_
#define STRATA_TESTS_TESTING_SCOPED_VARIABLE_H_

#include <cstdlib>
#include <string>

namespace strata {

// Sets an environment variable during its lifetime.
//
// Threads: no other thread may read the environment meanwhile.
class ScopedVariable {
 public:
  ScopedVariable(const std::string& name, const std::string& value)
      : name_(name) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { unsetenv(name_.c_str()); }

 private:
  const std::string name_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_SCOPED_VARIABLE_H_
