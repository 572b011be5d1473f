#ifndef STRATA_EXAMPLES_EAGER_MLP_DATA_H_
#define STRATA_EXAMPLES_EAGER_MLP_DATA_H_

#include <cstdint>
#include <optional>

#include "strata/examples/eager_mlp/runtime.h"
#include "strata/tensor/tensor.h"

namespace eager_mlp {

struct Batch {
  strata::Tensor x;
  strata::Tensor y;
};

// Inputs at random and a smooth function of them, in pinned host memory.
//
// Model: the same numbers for the same seed.
class DataSet {
 public:
  DataSet(Runtime& runtime, int batches, int rows, int in, int out,
          std::uint64_t seed);

  int batches() const { return static_cast<int>(x_.shape().dim(0)); }
  // Parts of the whole: no memory of their own.
  Batch batch(int i) const { return {x_.SubSlice(i), y_.SubSlice(i)}; }

 private:
  strata::Tensor x_;
  strata::Tensor y_;
};

// Brings batches to the device, each while the one before is computed with.
//
// Model: the copying stream owns the memory of batches, and gets it back when
//   the computing stream has done its last use.
class Loader {
 public:
  // Starts to copy the first batch.
  Loader(Runtime& runtime, const DataSet& data);
  // The next batch, which what is submitted from now on to the computing stream
  // may use; from the first again after the last.
  Batch Next();
  // The last use of the batch was submitted to the computing stream.
  void Return(const Batch& batch);

 private:
  void Prefetch();
  strata::Tensor ToDevice(const strata::Tensor& source);

  Runtime& runtime_;
  const DataSet& data_;
  int next_ = 0;
  std::optional<Batch> coming_;
};

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_DATA_H_
