// Kernel values of small whole distances, looked up in a table held in registers (AVX-512): a third of the instructions
// of an exponential, and the same values.
#pragma once

#include "kernel/kernel_function.hpp"

namespace multimargin::kernel {

class DistanceTable {
 public:
  static constexpr Index most = 127;  // largest distance

  // Whether a table is faster than the kernel function on this machine.
  static bool worthwhile() {
#if MULTIMARGIN_X86
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
  }

  // values_[i] = k of distance unit * i.
  DistanceTable(const KernelSpec& spec, double unit) {
    std::int32_t distances[most + 1];
    for (std::int32_t i = 0; i <= most; ++i) distances[i] = i;
    float* values = values_;
    kernel_rows<std::int32_t, float>(spec, {distances, most + 1, nullptr}, {.unit = unit}, 1, most + 1, &values);
  }

  // out[j] = k of a_norm + b_norm[j] - 2 counts[j], a distance of at most `most`, j < width.
#if MULTIMARGIN_X86
  MULTIMARGIN_AVX512
#endif
  void row(const std::uint8_t* counts, std::int32_t a_norm, const std::int32_t* b_norm, Index width, float* out) const {
#if MULTIMARGIN_X86
    __m512 t[8];
    for (int i = 0; i < 8; ++i) t[i] = _mm512_load_ps(values_ + 16 * i);
    const __m512i a = _mm512_set1_epi32(a_norm);
    for (Index j = 0; j < width; j += 16) {
      const auto lanes = static_cast<__mmask16>(width - j < 16 ? (1 << (width - j)) - 1 : 0xffff);
      const __m512i common = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, counts + j));
      const __m512i b = _mm512_maskz_loadu_epi32(lanes, b_norm + j);
      const __m512i distance = _mm512_sub_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(common, common));
      // A permutation uses the five lowest bits: one permutation per 32 distances, and the higher bits choose among
      // them.
      const __mmask16 bit5 = _mm512_test_epi32_mask(distance, _mm512_set1_epi32(32));
      const __mmask16 bit6 = _mm512_test_epi32_mask(distance, _mm512_set1_epi32(64));
      const __m512 below = _mm512_mask_blend_ps(bit5, _mm512_permutex2var_ps(t[0], distance, t[1]),
                                                _mm512_permutex2var_ps(t[2], distance, t[3]));
      const __m512 above = _mm512_mask_blend_ps(bit5, _mm512_permutex2var_ps(t[4], distance, t[5]),
                                                _mm512_permutex2var_ps(t[6], distance, t[7]));
      _mm512_mask_storeu_ps(out + j, lanes, _mm512_mask_blend_ps(bit6, below, above));
    }
#else
    for (Index j = 0; j < width; ++j) out[j] = values_[a_norm + b_norm[j] - 2 * counts[j]];
#endif
  }

 private:
  alignas(64) float values_[most + 1];
};

}  // namespace multimargin::kernel
