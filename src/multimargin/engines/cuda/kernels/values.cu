// Kernel values from products or distances of samples, and scores from kernel values that are not stored.
//
// A tile has the products of some samples (rows) with others (columns), or what stands for them: D is row-major,
// integers (exact) or float64. `left` and `right` are the squared norms of the samples in the same unit, `unit` is what
// one unit of D is worth.
//
// Compiled with KERNEL, PRODUCT (int or double) and VALUE (of what is stored).
namespace multimargin {

// DISTANCE is RBF from squared distances instead of products.
enum Kernels { LINEAR, RBF, DISTANCE, POLY, SIGMOID, LAPLACIAN };

using Product = PRODUCT;
using Value = VALUE;

struct Spec {
  double gamma, coef0, unit;
  int degree;
};

__device__ __forceinline__ double power(double x, int degree) {
  double value = 1.0;
  for (; degree; degree >>= 1, x *= x)
    if (degree & 1) value *= x;
  return value;
}

// Whole numbers below 2^53 in float64 are exact, so distances of integers are.
__device__ __forceinline__ double argument(Product D, double left, double right, const Spec& k) {
  if (KERNEL == RBF) return -k.gamma * k.unit * fmax(left + right - 2.0 * (double)D, 0.0);
  if (KERNEL == LAPLACIAN || KERNEL == DISTANCE) return -k.gamma * k.unit * (double)D;
  if (KERNEL == LINEAR) return k.unit * (double)D;
  return k.gamma * k.unit * (double)D + k.coef0;
}

__device__ __forceinline__ double exact(Product D, double left, double right, const Spec& k) {
  const double x = argument(D, left, right, k);
  if (KERNEL == RBF || KERNEL == LAPLACIAN || KERNEL == DISTANCE) return exp(x);
  if (KERNEL == POLY) return power(x, k.degree);
  return KERNEL == SIGMOID ? tanh(x) : x;
}

// The exponent in float32, for values in 16 bits. Distances of integers are exact before they are rounded once.
__device__ __forceinline__ float exponent(int D, double left, double right, const Spec& k) {
  if (KERNEL == RBF) return (float)(-k.gamma * k.unit) * (float)((int)left + (int)right - 2 * D);
  return (float)argument(D, left, right, k);
}
__device__ __forceinline__ float exponent(double D, double left, double right, const Spec& k) {
  return (float)argument(D, left, right, k);
}

__device__ __forceinline__ void put(unsigned short& out, Product D, double left, double right, const Spec& k, double) {
  out = (unsigned short)(__expf(exponent(D, left, right, k)) * 65535.f + 0.5f);  // kernels of distances only
}
template <class T>
__device__ __forceinline__ void put(T& out, Product D, double left, double right, const Spec& k, double factor) {
  out = (T)(exact(D, left, right, k) * factor);
}

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T x[4];
};

// out[i * row + j] = K(left_i, right_j); factors normalise the kernel, or are null. Rows of D and `out` are padded.
extern "C" __global__ void store(const Product* D, long long width, int rows, int columns, const double* left,
                                 const double* right, const double* left_factor, const double* right_factor,
                                 double gamma, double coef0, double unit, int degree, Value* out, long long row) {
  const Spec k{gamma, coef0, unit, degree};
  const int j = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (j >= columns) return;
  double norm[4], factor[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const bool there = j + e < columns;
    norm[e] = there && right ? right[j + e] : 0.0, factor[e] = there && right_factor ? right_factor[j + e] : 1.0;
  }
#pragma unroll 2
  for (int i = blockIdx.y; i < rows; i += gridDim.y) {
    const Four<Product> d = *(const Four<Product>*)(D + i * width + j);
    const double own = left ? left[i] : 0.0, scale = left_factor ? left_factor[i] : 1.0;
    Four<Value> values;
#pragma unroll
    for (int e = 0; e < 4; ++e) put(values.x[e], d.x[e], own, norm[e], k, scale * factor[e]);
    *(Four<Value>*)(out + i * row + j) = values;
  }
}

// partial[s][r][j] = sum over the rows i of slice s of K(left_i, right_j) coef[i][r], for CHUNK classes from `from` on.
extern "C" __global__ void score(const Product* D, long long width, int rows, int columns, const double* left,
                                 const double* right, const double* left_factor, const double* right_factor,
                                 double gamma, double coef0, double unit, int degree, double offset,
                                 const double* coef, int m, int from, double* partial) {
  const Spec k{gamma, coef0, unit, degree};
  const int j = blockIdx.x * blockDim.x + threadIdx.x, slices = gridDim.y, slice = blockIdx.y;
  const int first = (int)((long long)rows * slice / slices), last = (int)((long long)rows * (slice + 1) / slices);
  const bool mine = j < columns;
  const double norm = mine && right ? right[j] : 0.0, factor = mine && right_factor ? right_factor[j] : 1.0;
  constexpr int AT_ONCE = 32;
  __shared__ double weights[AT_ONCE][CHUNK];
  double sums[CHUNK];
#pragma unroll
  for (int r = 0; r < CHUNK; ++r) sums[r] = 0.0;
  for (int base = first; base < last; base += AT_ONCE) {
    const int some = min(AT_ONCE, last - base);
    __syncthreads();
    for (int e = threadIdx.x; e < some * CHUNK; e += blockDim.x) {
      const int i = base + e / CHUNK, r = from + e % CHUNK;
      const double weight = r < m ? coef[(long long)i * m + r] : 0.0;
      weights[e / CHUNK][e % CHUNK] = weight;
    }
    __syncthreads();
    if (!mine) continue;
#pragma unroll 4
    for (int e = 0; e < some; ++e) {
      const int i = base + e;
      double value = exact(D[i * width + j], left ? left[i] : 0.0, norm, k);
      if (left_factor) value *= left_factor[i] * factor;
      value += offset;
#pragma unroll
      for (int r = 0; r < CHUNK; ++r) sums[r] += value * weights[e][r];
    }
  }
  if (!mine) return;
  const int many = min(CHUNK, m - from);
#pragma unroll
  for (int r = 0; r < CHUNK; ++r)
    if (r < many) partial[((long long)slice * CHUNK + r) * columns + j] = sums[r];
}

}  // namespace multimargin
