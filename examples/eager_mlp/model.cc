#include "strata/examples/eager_mlp/model.h"

#include <cmath>
#include <random>
#include <utility>

#include "strata/examples/eager_mlp/kernels.h"
#include "strata/examples/eager_mlp/ops.h"

namespace eager_mlp {

using strata::Tensor;

namespace {

constexpr float kRate = 0.05F;
constexpr float kMomentum = 0.9F;

// A tensor of the computing stream with the numbers of `source`, which is in
// pinned memory.
Tensor Upload(Runtime& runtime, const Tensor& source) {
  Tensor result = runtime.Make(source.shape());
  runtime.Copy(result, source, runtime.compute());
  runtime.EndUse(source, runtime.compute());
  return result;
}

// Uniform in [-limit, limit). Computed from the bits of the generator, because
// the distributions of standard libraries differ.
void Fill(const Tensor& tensor, float limit, std::mt19937_64& random) {
  auto* data = tensor.data<float>();
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    const auto unit = static_cast<float>(random() >> 40) / 16777216.0F;
    data[i] = (2 * unit - 1) * limit;
  }
}

}  // namespace

Mlp::Mlp(Runtime& runtime, const std::vector<int>& sizes, std::uint64_t seed)
    : runtime_(runtime) {
  std::mt19937_64 random(seed);
  for (std::size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    const int in = sizes[layer];
    const int out = sizes[layer + 1];
    const float limit = std::sqrt(3.0F / static_cast<float>(in));
    const Tensor weights = runtime.MakePinned({in, out});
    Fill(weights, limit, random);
    parameters_.emplace_back(Upload(runtime, weights));
    const Tensor biases = runtime.MakePinned({out});
    Fill(biases, 0, random);
    parameters_.emplace_back(Upload(runtime, biases));
  }
}

Variable Mlp::Forward(Tape& tape, const Tensor& x) const {
  Variable result(x);
  for (std::size_t i = 0; i < parameters_.size(); i += 2) {
    if (i != 0) result = ReluOp(runtime_, tape, result);
    result = AffineOp(runtime_, tape, result, parameters_[i],
                      parameters_[i + 1], i != 0);
  }
  return result;
}

std::vector<float> Mlp::Download() const {
  std::vector<Tensor> copies;
  for (const Variable& parameter : parameters_) {
    copies.push_back(runtime_.MakePinned(parameter.value().shape()));
    runtime_.Copy(copies.back(), parameter.value(), runtime_.compute());
    runtime_.EndUse(copies.back(), runtime_.compute());
  }
  runtime_.Synchronize();
  std::vector<float> result;
  for (const Tensor& copy : copies) {
    const auto* data = copy.data<float>();
    result.insert(result.end(), data, data + copy.num_elements());
  }
  return result;
}

Optimizer::Optimizer(Runtime& runtime, std::vector<Variable> parameters)
    : runtime_(runtime), parameters_(std::move(parameters)) {
  for (const Variable& parameter : parameters_) {
    velocities_.push_back(runtime.Make(parameter.value().shape()));
    Check(runtime.device().MemsetAsync(AddressOf(velocities_.back().data()), 0,
                                       velocities_.back().size_bytes(),
                                       runtime.compute()),
          "clear a velocity");
  }
}

void Optimizer::Step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Variable& parameter = parameters_[i];
    runtime_.Launch(MomentumStep{
        parameter.gradient().data<float>(), velocities_[i].data<float>(),
        parameter.value().data<float>(), kRate, kMomentum,
        static_cast<int>(parameter.value().num_elements())});
    parameter.ForgetGradient();
  }
}

}  // namespace eager_mlp
