#ifndef STRATA_EXAMPLES_EAGER_MLP_KERNELS_H_
#define STRATA_EXAMPLES_EAGER_MLP_KERNELS_H_

// The kernels of the example, for the host and for a GPU.
//
// A kernel is a value that holds its operands. operator()(i) computes the i-th
// of its size() results. Each result is computed alone and in a fixed order, so
// the results are bitwise equal for any number of threads. Operands() calls
// `visit(pointer, count)` for each operand. An operand with a pointer to const
// is read; other operands are written.

#ifdef __CUDACC__
#define STRATA_MLP_KERNEL __host__ __device__
#else
#define STRATA_MLP_KERNEL
#endif

namespace eager_mlp {

// y = x w + b, for `rows` rows of `in` numbers each.
struct Affine {
  const float* x;
  const float* w;
  const float* b;
  float* y;
  int rows, in, out;

  STRATA_MLP_KERNEL int size() const { return rows * out; }
  STRATA_MLP_KERNEL void operator()(int i) const {
    const int row = i / out;
    const int column = i % out;
    float sum = b[column];
    for (int k = 0; k < in; ++k) sum += x[row * in + k] * w[k * out + column];
    y[i] = sum;
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(x, rows * in);
    visit(w, in * out);
    visit(b, out);
    visit(y, rows * out);
  }
};

// dx = dy wᵀ
struct AffineInputGradient {
  const float* dy;
  const float* w;
  float* dx;
  int rows, in, out;

  STRATA_MLP_KERNEL int size() const { return rows * in; }
  STRATA_MLP_KERNEL void operator()(int i) const {
    const int row = i / in;
    const int k = i % in;
    float sum = 0;
    for (int column = 0; column < out; ++column) {
      sum += dy[row * out + column] * w[k * out + column];
    }
    dx[i] = sum;
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(dy, rows * out);
    visit(w, in * out);
    visit(dx, rows * in);
  }
};

// dw = xᵀ dy
struct AffineWeightGradient {
  const float* x;
  const float* dy;
  float* dw;
  int rows, in, out;

  STRATA_MLP_KERNEL int size() const { return in * out; }
  STRATA_MLP_KERNEL void operator()(int i) const {
    const int k = i / out;
    const int column = i % out;
    float sum = 0;
    for (int row = 0; row < rows; ++row) {
      sum += x[row * in + k] * dy[row * out + column];
    }
    dw[i] = sum;
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(x, rows * in);
    visit(dy, rows * out);
    visit(dw, in * out);
  }
};

// db = the sum of the rows of dy
struct AffineBiasGradient {
  const float* dy;
  float* db;
  int rows, out;

  STRATA_MLP_KERNEL int size() const { return out; }
  STRATA_MLP_KERNEL void operator()(int column) const {
    float sum = 0;
    for (int row = 0; row < rows; ++row) sum += dy[row * out + column];
    db[column] = sum;
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(dy, rows * out);
    visit(db, out);
  }
};

struct Relu {
  const float* x;
  float* y;
  int count;

  STRATA_MLP_KERNEL int size() const { return count; }
  STRATA_MLP_KERNEL void operator()(int i) const { y[i] = x[i] > 0 ? x[i] : 0; }
  template <class Visit>
  void Operands(Visit visit) {
    visit(x, count);
    visit(y, count);
  }
};

struct ReluGradient {
  const float* y;
  const float* dy;
  float* dx;
  int count;

  STRATA_MLP_KERNEL int size() const { return count; }
  STRATA_MLP_KERNEL void operator()(int i) const {
    dx[i] = y[i] > 0 ? dy[i] : 0;
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(y, count);
    visit(dy, count);
    visit(dx, count);
  }
};

// One number, summed by one thread: batches are small.
struct SquaredError {
  const float* predicted;
  const float* wanted;
  float* loss;
  int count;

  STRATA_MLP_KERNEL int size() const { return 1; }
  STRATA_MLP_KERNEL void operator()(int /*i*/) const {
    float sum = 0;
    for (int i = 0; i < count; ++i) {
      const float error = predicted[i] - wanted[i];
      sum += error * error;
    }
    *loss = sum / static_cast<float>(count);
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(predicted, count);
    visit(wanted, count);
    visit(loss, 1);
  }
};

struct SquaredErrorGradient {
  const float* predicted;
  const float* wanted;
  float* gradient;
  int count;

  STRATA_MLP_KERNEL int size() const { return count; }
  STRATA_MLP_KERNEL void operator()(int i) const {
    gradient[i] = 2 * (predicted[i] - wanted[i]) / static_cast<float>(count);
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(predicted, count);
    visit(wanted, count);
    visit(gradient, count);
  }
};

// velocity = momentum * velocity + gradient; parameter -= rate * velocity
struct MomentumStep {
  const float* gradient;
  float* velocity;
  float* parameter;
  float rate, momentum;
  int count;

  STRATA_MLP_KERNEL int size() const { return count; }
  STRATA_MLP_KERNEL void operator()(int i) const {
    velocity[i] = momentum * velocity[i] + gradient[i];
    parameter[i] -= rate * velocity[i];
  }
  template <class Visit>
  void Operands(Visit visit) {
    visit(gradient, count);
    visit(velocity, count);
    visit(parameter, count);
  }
};

}  // namespace eager_mlp

// A list of all kernels, to instantiate templates.
#define STRATA_MLP_KERNELS(apply)                                      \
  apply(Affine) apply(AffineInputGradient) apply(AffineWeightGradient) \
      apply(AffineBiasGradient) apply(Relu) apply(ReluGradient)        \
          apply(SquaredError) apply(SquaredErrorGradient) apply(MomentumStep)

#endif  // STRATA_EXAMPLES_EAGER_MLP_KERNELS_H_
