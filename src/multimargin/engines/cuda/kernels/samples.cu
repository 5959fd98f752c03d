// Samples on the device: rows that are gathered, sparse rows that are spread out, and sums of differences.
//
// Compiled with ENTRY (of a row) and STORED (of what is held).
namespace multimargin {

using Entry = ENTRY;
using Stored = STORED;

// Rows `ids` of a dense matrix, shifted, and padded with zeros to `padded` entries. If `inverse` is not 0, an entry is
// the whole number next to itself times that.
extern "C" __global__ void take(const Stored* X, long long d, const long long* ids, long long rows, const double* centre,
                                double shift, double inverse, Entry* out, long long padded) {
  const long long i = blockIdx.x;
  if (i >= rows) return;
  const Stored* x = X + ids[i] * d;
  for (long long j = threadIdx.x; j < padded; j += blockDim.x) {
    const double value = j < d ? (double)x[j] : 0.0, whole = inverse != 0.0 ? rint(__dmul_rn(value, inverse)) : value;
    out[i * padded + j] = j < d ? (Entry)(whole - (centre ? centre[j] : shift)) : (Entry)0;
  }
}

// The same of a CSR matrix; `out` is zero.
extern "C" __global__ void spread(const Stored* data, const int* indices, const long long* starts, const long long* ids,
                                  long long rows, Entry* out, long long padded) {
  const long long i = blockIdx.x;
  if (i >= rows) return;
  for (long long e = starts[ids[i]] + threadIdx.x; e < starts[ids[i] + 1]; e += blockDim.x)
    out[i * padded + indices[e]] = (Entry)data[e];
}

// Squared norms, exact for integers.
extern "C" __global__ void norms(const Entry* rows_of, long long rows, long long padded, double* out) {
  const long long i = blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32;
  if (i >= rows) return;
  double sum = 0.0;
  for (long long j = threadIdx.x & 31; j < padded; j += 32) {
    const double x = (double)rows_of[i * padded + j];
    sum += x * x;
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if ((threadIdx.x & 31) == 0) out[i] = sum;
}

// D[i][j] = sum_f |a_if - b_jf| (or the squares), by tiles of 16 x 16 samples.
template <bool squares>
__device__ void differences_of(const Entry* A, const Entry* B, int rows, int columns, int d, long long padded, double* D,
                               long long width) {
  __shared__ double a[16][17], b[16][17];
  const int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x, other = blockIdx.x * 16 + y;
  double sum = 0.0;
  for (int f = 0; f < d; f += 16) {
    a[y][x] = i < rows && f + x < d ? (double)A[i * padded + f + x] : 0.0;
    b[y][x] = other < columns && f + x < d ? (double)B[other * padded + f + x] : 0.0;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 16; ++e) {
      const double c = a[y][e] - b[x][e];
      sum += squares ? c * c : fabs(c);
    }
    __syncthreads();
  }
  if (i < rows && j < columns) D[i * width + j] = sum;
}

extern "C" __global__ void differences(const Entry* A, const Entry* B, int rows, int columns, int d, long long padded,
                                       double* D, long long width) {
  differences_of<false>(A, B, rows, columns, d, padded, D, width);
}

extern "C" __global__ void squared_differences(const Entry* A, const Entry* B, int rows, int columns, int d,
                                               long long padded, double* D, long long width) {
  differences_of<true>(A, B, rows, columns, d, padded, D, width);
}

}  // namespace multimargin
