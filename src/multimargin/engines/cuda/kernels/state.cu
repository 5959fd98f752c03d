// The point of a fit on the device: alpha and G in float64, class-major (entry r of sample i at r * n + i).
//
// Compiled with MACHINE and REAL (of a working set's variables).
#include "machines.cuh"

namespace multimargin {

using Real = REAL;
using Kind = Traits<MACHINE>;

#define EVERY(i, n) \
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < (n); i += (long long)gridDim.x * blockDim.x)

__device__ __forceinline__ AlphaSample<MACHINE> sample_of(const double* alpha, const double* G, long long n, int m, int y,
                                                          double C, long long i) {
  return {alpha + i, G + i, n, m, y, C};
}

// What a certificate needs of every sample: six numbers, one array each (machines.cuh, Facts).
extern "C" __global__ void measure(const double* alpha, const double* G, const double* ridge, const int* y, const double* C,
                                   long long n, int m, double* out) {
  EVERY(i, n) {
    const Facts f = facts(sample_of(alpha, G, n, m, y[i], C[i], i), ridge ? ridge[i] : 0.0);
    out[i] = f.psi, out[n + i] = f.gain, out[2 * n + i] = f.loss;
    out[3 * n + i] = f.score, out[4 * n + i] = f.linear, out[5 * n + i] = f.square;
  }
}

// The variables and gradients of a working set, in the layout of the descent.
extern "C" __global__ void gather(const double* alpha, const double* G, const double* diagonal, const double* ridge,
                                  const int* y, const double* C, long long n, int m, const long long* W, int q,
                                  long long stride, Real* v, Real* g, Real* d, Real* R, int* labels, Real* costs) {
  const int columns = Kind::binary ? 1 : m;
  EVERY(j, q) {
    const long long i = W[j];
    const auto s = sample_of(alpha, G, n, m, y[i], C[i], i);
    for (int r = 0; r < columns; ++r) {
      v[r * stride + j] = (Real)(Kind::binary ? s.coefficient(0) : larger(s.value(r), 0.0));
      g[r * stride + j] = (Real)s.gradient(r);
    }
    d[j] = (Real)diagonal[i], labels[j] = y[i], costs[j] = (Real)C[i];
    if (ridge) R[j] = (Real)ridge[i];
  }
}

// alpha of the samples that the descent has moved, feasible to the last bit; `moved` says which these are, and `delta`
// (class-major) what changed.
extern "C" __global__ void scatter(double* alpha, const int* y, const double* C, long long n, int m, const long long* W,
                                   int q, long long stride, const Real* before, const Real* v, bool* moved, double* delta) {
  EVERY(j, q) {
    const int columns = Kind::binary ? 1 : m;
    bool changed = false;
    for (int r = 0; r < columns; ++r) changed |= v[r * stride + j] != before[r * stride + j];
    moved[j] = changed;
    if (!changed) continue;
    const long long i = W[j];
    const int label = y[i];
    const double cost = C[i];
    double sum = 0.0, total = 0.0, own = 0.0;
    for (int r = 0; r < columns; ++r) sum += (double)v[r * stride + j];
    const double scale = Kind::simplex ? cost / sum : 1.0;
    auto variable = [&](int r) {  // a variable that is at its bound in REAL is so in float64
      const Real x = Kind::binary && label != 1 ? -v[r * stride + j] : v[r * stride + j];
      return Kind::bounded && x >= (Real)cost ? cost : larger((double)x * scale, 0.0);
    };
    for (int r = 0; r < columns; ++r)
      if (has_variable<MACHINE>(r, label)) total += variable(r);
    for (int r = 0; r < columns; ++r) {
      const double x = variable(r);
      double a;
      if (Kind::binary)
        a = label == 1 ? x : -x;
      else if (r == label && MACHINE != ONE_VS_REST)
        continue;
      else if (Kind::shifted)
        a = total / m - x;
      else
        a = r == label ? x : -x;
      own -= a;
      delta[(long long)r * q + j] = a + 0.0 - alpha[r * n + i];
      alpha[r * n + i] = a + 0.0;
    }
    if (Kind::coupled) {  // the row sums to zero
      if (Kind::simplex) own = smaller(own, cost);
      delta[(long long)label * q + j] = own - alpha[label * n + i];
      alpha[label * n + i] = own + 0.0;
    }
  }
}

}  // namespace multimargin
