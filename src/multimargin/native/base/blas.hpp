// Matrix products by the BLAS that SciPy has loaded. Nothing is linked: the functions are called through the pointers
// of scipy.linalg.cython_blas (Fortran calling convention, 32-bit integers).
#pragma once

#include "base/blas_memory.hpp"
#include "base/platform.hpp"

namespace multimargin::inline base::blas {

template <class T>
using Gemm = void (*)(char* trans_a, char* trans_b, int* m, int* n, int* k, T* alpha, T* a, int* lda, T* b, int* ldb,
                      T* beta, T* c, int* ldc);

// Set once by set_blas() when the package is imported.
template <class T>
inline Gemm<T> gemm_pointer = nullptr;

// Call it before a parallel region, so that a missing BLAS is an error and not a crash.
template <class T>
void require() {
  if (!gemm_pointer<T>) throw std::runtime_error("no BLAS: call multimargin._core.set_blas() first");
}

inline int to_int(Index value) {
  if (value > std::numeric_limits<int>::max()) throw std::length_error("matrix dimension too large for a 32-bit BLAS");
  return static_cast<int>(value);
}

// Row-major C (m x n) = alpha op(A) op(B) + beta C, where op(A) is m x k and op(B) is k x n; op transposes if asked.
// ld* are the row lengths of the arrays as stored. Runs on as many threads as the BLAS is set to; callers limit it.
template <class T>
void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, T alpha, const T* a, Index lda, const T* b,
          Index ldb, T beta, T* c, Index ldc) {
  require<T>();
  // For Fortran (column-major) every row-major matrix is its transpose: C' = op(B)' op(A)'.
  char op_a = transpose_a ? 'T' : 'N', op_b = transpose_b ? 'T' : 'N';
  int rows = to_int(n), columns = to_int(m), inner = to_int(k);
  int ld_a = to_int(lda), ld_b = to_int(ldb), ld_c = to_int(ldc);
  const Running running;
  gemm_pointer<T>(&op_b, &op_a, &rows, &columns, &inner, &alpha, const_cast<T*>(b), &ld_b, const_cast<T*>(a), &ld_a,
                  &beta, c, &ld_c);
}

}  // namespace multimargin::base::blas
