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

// Random inputs and a smooth function of them, in pinned host memory.
//
// Model: the same numbers for the same seed.
class DataSet {
 public:
  DataSet(Runtime& runtime, int batches, int rows, int in, int out,
          std::uint64_t seed);

  int batches() const { return static_cast<int>(x_.shape().dim(0)); }
  // Slices of the data set, without memory of their own.
  Batch batch(int i) const { return {x_.SubSlice(i), y_.SubSlice(i)}; }

 private:
  strata::Tensor x_;
  strata::Tensor y_;
};

// Copies the next batch to the device while the present one is used.
//
// Model: the copying stream owns the memory of the batches. It reuses the
//   memory after the last use by the computing stream completes.
class Loader {
 public:
  // Starts the copy of the first batch.
  Loader(Runtime& runtime, const DataSet& data);
  // Returns the next batch, for work submitted to the computing stream from now
  // on. Starts over after the last batch.
  Batch Next();
  // Call it after the last use of the batch was submitted to the computing
  // stream.
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
