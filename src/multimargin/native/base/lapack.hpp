// Cholesky factors by the BLAS and LAPACK that SciPy has loaded. Nothing is linked: the functions are called through
// the pointers of scipy.linalg.cython_blas and cython_lapack (Fortran calling convention, 32-bit integers).
//
// Matrices are symmetric, of which the half below the diagonal is read and written, column after column.
#pragma once

#include "base/blas.hpp"

namespace multimargin::inline base::lapack {

using Syrk = void (*)(char* half, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta,
                      double* c, int* ldc);
using Potrf = void (*)(char* half, int* n, double* a, int* lda, int* info);  // dpotri has the same arguments
using Potrs = void (*)(char* half, int* n, int* count, double* a, int* lda, double* b, int* ldb, int* info);

// Set once by set_lapack() when the package is imported.
inline Syrk syrk_pointer = nullptr;
inline Potrf potrf_pointer = nullptr, potri_pointer = nullptr;
inline Potrs potrs_pointer = nullptr;

inline void require() {
  if (!syrk_pointer) throw std::runtime_error("no LAPACK: call multimargin._core.set_lapack() first");
}

// H = rows rows', where rows (n x p) lie one after the other.
inline void gram(const double* rows, Index n, Index p, double* H) {
  char half = 'L', transposed = 'T';
  int size = blas::to_int(n), inner = blas::to_int(p), lda = std::max(inner, 1), ldc = std::max(size, 1);
  double one = 1.0, zero = 0.0;
  const blas::Running running;
  syrk_pointer(&half, &transposed, &size, &inner, &one, const_cast<double*>(rows), &lda, &zero, H, &ldc);
}

// H += rows' rows, where rows (n x p) lie one after the other.
inline void add_outer(const double* rows, Index n, Index p, double* H) {
  char half = 'L', plain = 'N';
  int size = blas::to_int(p), inner = blas::to_int(n), ld = std::max(size, 1);
  double one = 1.0;
  const blas::Running running;
  syrk_pointer(&half, &plain, &size, &inner, &one, const_cast<double*>(rows), &ld, &one, H, &ld);
}

// A becomes its Cholesky factor; false if A is not positive definite.
inline bool factor(double* A, Index n) {
  char half = 'L';
  int size = blas::to_int(n), ld = std::max(size, 1), info = 0;
  const blas::Running running;
  potrf_pointer(&half, &size, A, &ld, &info);
  return info == 0;
}

// A Cholesky factor becomes the inverse of its matrix.
inline bool invert(double* A, Index n) {
  char half = 'L';
  int size = blas::to_int(n), ld = std::max(size, 1), info = 0;
  const blas::Running running;
  potri_pointer(&half, &size, A, &ld, &info);
  return info == 0;
}

// b becomes the solution of A x = b, given the Cholesky factor of A.
inline void solve(const double* factor, Index n, double* b) {
  char half = 'L';
  int size = blas::to_int(n), ld = std::max(size, 1), one = 1, info = 0;
  const blas::Running running;
  potrs_pointer(&half, &size, &one, const_cast<double*>(factor), &ld, b, &ld, &info);
}

}  // namespace multimargin::base::lapack
