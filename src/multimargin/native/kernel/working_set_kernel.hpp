// Kernel rows of a working set against itself, computed a few at a time.
#pragma once

#include "kernel/kernel_block.hpp"

namespace multimargin::kernel {

// K(i, j) between all rows of `samples`, which must outlive it.
class WorkingSetKernel {
 public:
  WorkingSetKernel(const KernelSpec& spec, const Samples& samples, int n_threads)
      : spec_(spec), samples_(samples), n_threads_(n_threads) {}

  Index size() const { return samples_.n(); }

  // out[places[c] * stride + j] = K(which[c], j) for c < count and all j.
  template <class T>
  void rows(const Index* which, Index count, T* out, Index stride, const Index* places) const {
    kernel_block<T>({spec_, samples_, samples_}, which, count, 0, size(), {out, stride, places}, n_threads_);
  }

 private:
  KernelSpec spec_;
  const Samples& samples_;
  int n_threads_;
};

}  // namespace multimargin::kernel
