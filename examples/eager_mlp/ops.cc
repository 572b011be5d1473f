#include "strata/examples/eager_mlp/ops.h"

#include "strata/examples/eager_mlp/kernels.h"

namespace eager_mlp {

using strata::Tensor;

namespace {

int Dim(const Tensor& tensor, std::size_t i) {
  return static_cast<int>(tensor.shape().dim(i));
}
int Count(const Tensor& tensor) {
  return static_cast<int>(tensor.num_elements());
}
float* Data(const Tensor& tensor) { return tensor.data<float>(); }

void AffineBackward(Runtime& runtime, const Variable& x, const Variable& w,
                    const Variable& b, const Variable& y, bool input_gradient) {
  const Tensor& dy = y.gradient();
  const int rows = Dim(x.value(), 0);
  const int in = Dim(w.value(), 0);
  const int out = Dim(w.value(), 1);
  if (input_gradient) {
    x.SetGradient(runtime.Make(x.value().shape()));
    runtime.Launch(AffineInputGradient{Data(dy), Data(w.value()),
                                       Data(x.gradient()), rows, in, out});
  }
  w.SetGradient(runtime.Make(w.value().shape()));
  runtime.Launch(AffineWeightGradient{Data(x.value()), Data(dy),
                                      Data(w.gradient()), rows, in, out});
  b.SetGradient(runtime.Make(b.value().shape()));
  runtime.Launch(AffineBiasGradient{Data(dy), Data(b.gradient()), rows, out});
}

}  // namespace

Variable AffineOp(Runtime& runtime, Tape& tape, const Variable& x,
                  const Variable& w, const Variable& b, bool input_gradient) {
  const int rows = Dim(x.value(), 0);
  const int in = Dim(w.value(), 0);
  const int out = Dim(w.value(), 1);
  Variable y(runtime.Make({rows, out}));
  runtime.Launch(Affine{Data(x.value()), Data(w.value()), Data(b.value()),
                        Data(y.value()), rows, in, out});
  tape.Add([&runtime, x, w, b, y, input_gradient] {
    AffineBackward(runtime, x, w, b, y, input_gradient);
  });
  return y;
}

Variable ReluOp(Runtime& runtime, Tape& tape, const Variable& x) {
  const int count = Count(x.value());
  Variable y(runtime.Make(x.value().shape()));
  runtime.Launch(Relu{Data(x.value()), Data(y.value()), count});
  tape.Add([&runtime, x, y, count] {
    x.SetGradient(runtime.Make(x.value().shape()));
    runtime.Launch(ReluGradient{Data(y.value()), Data(y.gradient()),
                                Data(x.gradient()), count});
  });
  return y;
}

Tensor SquaredErrorOp(Runtime& runtime, Tape& tape, const Variable& predicted,
                      const Tensor& wanted) {
  const int count = Count(wanted);
  Tensor loss = runtime.Make({1});
  runtime.Launch(
      SquaredError{Data(predicted.value()), Data(wanted), Data(loss), count});
  tape.Add([&runtime, predicted, wanted, count] {
    predicted.SetGradient(runtime.Make(wanted.shape()));
    runtime.Launch(SquaredErrorGradient{Data(predicted.value()), Data(wanted),
                                        Data(predicted.gradient()), count});
  });
  return loss;
}

}  // namespace eager_mlp
