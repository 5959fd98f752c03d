// Whether all values are whole numbers k times one scale (native/samples/grid.hpp has the rule), and the limits of k.
//
// Compiled with STORED (of the values). found = {whether one is not, the smallest k and 0, the largest k and 0}.
namespace multimargin {

constexpr double LARGEST = 32767.0;  // the integers of a grid lie in +-LARGEST (engines/cpu/grids.py)

extern "C" __global__ void limits(const STORED* x, long long count, double scale, double inverse, double tolerance,
                                  int* found) {
  int off = 0, low = 0, high = 0;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
    const double value = (double)x[i], k = rint(__dmul_rn(value, inverse));
    // Written so that NaN is off the grid.
    if (!(fabs(__dsub_rn(value, __dmul_rn(k, scale))) <= tolerance * fabs(value)) || !(fabs(k) <= LARGEST)) {
      off = 1;
      continue;
    }
    low = min(low, (int)k), high = max(high, (int)k);
  }
  for (int o = 16; o; o >>= 1) {
    off |= __shfl_xor_sync(~0u, off, o);
    low = min(low, __shfl_xor_sync(~0u, low, o)), high = max(high, __shfl_xor_sync(~0u, high, o));
  }
  if ((threadIdx.x & 31) == 0) {
    if (off) atomicOr(found, 1);
    atomicMin(found + 1, low), atomicMax(found + 2, high);
  }
}

}  // namespace multimargin
