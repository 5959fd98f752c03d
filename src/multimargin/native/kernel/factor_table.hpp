// RBF values of whole distances d < 2^14, as products of three factors (AVX-512):
//
//     exp(-rate d) = A[d mod 32] B[d / 32 mod 32] C[d / 1024]
//
// The factors lie in registers, and a look-up is a permutation: half the instructions of an exponential. A factor is
// rounded once, and two products are: relative errors are below 2.6 units of the last place.
#pragma once

#include "kernel/kernel_function.hpp"

namespace multimargin::kernel {

class FactorTable {
 public:
  static constexpr std::int32_t most = (1 << 14) - 1;  // largest distance

  // Whether a table is faster than the exponential on this machine.
  static bool worthwhile() {
#if MULTIMARGIN_X86
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
  }

  // For exp(-rate d), rate >= 0.
  explicit FactorTable(double rate) {
    fill(low_, 32, rate), fill(middle_, 32, 32 * rate), fill(high_, 16, 1024 * rate);
    // From here on values would be subnormal, which is slow: they are 0, as those of the exponential.
    constexpr double deepest = 87.3;
    last_ = most * rate <= deepest ? most : static_cast<std::int32_t>(deepest / rate);
  }

  // out[k][j] = exp(-rate d) of the distances d = a_norms[k] + b_norms[j] - 2 products[k * stride + j] <= most.
#if MULTIMARGIN_X86
  MULTIMARGIN_AVX512
#endif
  void rows(const std::int32_t* products, Index stride, const std::int32_t* a_norms, const std::int32_t* b_norms,
            Index count, Index width, float* const* out) const {
#if MULTIMARGIN_X86
    const __m512 low0 = _mm512_load_ps(low_), low1 = _mm512_load_ps(low_ + 16), high = _mm512_load_ps(high_);
    const __m512 middle0 = _mm512_load_ps(middle_), middle1 = _mm512_load_ps(middle_ + 16);
    const __m512i last = _mm512_set1_epi32(last_);
    for (Index k = 0; k < count; ++k) {
      const __m512i a = _mm512_set1_epi32(a_norms[k]);
      for (Index j = 0; j < width; j += 16) {
        const auto lanes = static_cast<__mmask16>(width - j < 16 ? (1 << (width - j)) - 1 : 0xffff);
        const __m512i p = _mm512_maskz_loadu_epi32(lanes, products + k * stride + j);
        const __m512i b = _mm512_maskz_loadu_epi32(lanes, b_norms + j);
        const __m512i d = _mm512_sub_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(p, p));
        // A permutation uses the five lowest bits of d, and the last one the four lowest.
        const __m512 x = _mm512_permutex2var_ps(low0, d, low1);
        const __m512 y = _mm512_permutex2var_ps(middle0, _mm512_srli_epi32(d, 5), middle1);
        const __m512 z = _mm512_maskz_permutexvar_ps(_mm512_cmple_epi32_mask(d, last), _mm512_srli_epi32(d, 10), high);
        _mm512_mask_storeu_ps(out[k] + j, lanes, _mm512_mul_ps(_mm512_mul_ps(x, y), z));
      }
    }
#else
    for (Index k = 0; k < count; ++k)
      for (Index j = 0; j < width; ++j) {
        const std::int32_t d = a_norms[k] + b_norms[j] - 2 * products[k * stride + j];
        out[k][j] = d <= last_ ? low_[d % 32] * middle_[d / 32 % 32] * high_[d / 1024] : 0.0f;
      }
#endif
  }

 private:
  static void fill(float* factors, int count, double rate) {
    for (int i = 0; i < count; ++i) factors[i] = static_cast<float>(std::exp(-rate * i));
  }

  alignas(64) float low_[32], middle_[32], high_[16];
  std::int32_t last_;  // largest distance whose value is not 0
};

}  // namespace multimargin::kernel
