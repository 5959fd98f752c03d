// The device's descent of c-svc on the host: called by test_cuda_on_host.py, which puts the kernel's text in KERNEL.
#include "on_host.hpp"

#include KERNEL

using namespace multimargin;

extern "C" void balanced(const Value* K, long long row, const Real* diagonal, const int* y, const Real* C, int q, Real* alpha,
                         Real* G, double margin, double tolerance, int most, double* found) {
  const int rows = ((q + BLOCKS - 1) / BLOCKS + NEXT - 1) / NEXT * NEXT;
  std::vector<Pick> told(MOST);
  std::vector<Real> products(2 * MOST);
  unsigned arrived = 0;
  launch(BLOCKS, THREADS, sizeof(Shared), [&] {
    descend(K, row, diagonal, y, C, q, alpha, G, margin, rows, told.data(), products.data(), &arrived, tolerance, most, found);
  });
}
