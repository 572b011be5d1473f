#include "strata/examples/eager_mlp/data.h"

#include <random>
#include <utility>

namespace eager_mlp {

using strata::Tensor;

DataSet::DataSet(Runtime& runtime, int batches, int rows, int in, int out,
                 std::uint64_t seed)
    : x_(runtime.MakePinned({batches, rows, in})),
      y_(runtime.MakePinned({batches, rows, out})) {
  std::mt19937_64 random(seed);
  auto* x = x_.data<float>();
  auto* y = y_.data<float>();
  for (int row = 0; row < batches * rows; ++row, x += in, y += out) {
    for (int i = 0; i < in; ++i) {
      x[i] = static_cast<float>(random() >> 40) / 8388608.0F - 1;
    }
    for (int i = 0; i < out; ++i) {
      y[i] = x[i % in] * x[(i + 1) % in] + 0.5F * x[(i + 2) % in];
    }
  }
}

Loader::Loader(Runtime& runtime, const DataSet& data)
    : runtime_(runtime), data_(data) {
  Prefetch();
}

Batch Loader::Next() {
  runtime_.Order(runtime_.copy(), runtime_.compute());
  Batch batch = *std::exchange(coming_, std::nullopt);
  Prefetch();
  return batch;
}

void Loader::Return(const Batch& batch) {
  runtime_.EndUse(batch.x, runtime_.compute());
  runtime_.EndUse(batch.y, runtime_.compute());
}

void Loader::Prefetch() {
  const Batch source = data_.batch(next_);
  next_ = (next_ + 1) % data_.batches();
  coming_ = Batch{ToDevice(source.x), ToDevice(source.y)};
}

Tensor Loader::ToDevice(const Tensor& source) {
  Tensor target = runtime_.MakeForCopy(source.shape());
  runtime_.Copy(target, source, runtime_.copy());
  // Pinned memory belongs to no stream.
  runtime_.EndUse(source, runtime_.copy());
  return target;
}

}  // namespace eager_mlp
