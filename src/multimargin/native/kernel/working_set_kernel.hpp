// Kernel rows of a working set against itself, computed a few at a time.
#pragma once

#include "kernel/kernel_block.hpp"

namespace multimargin::kernel {

// K(i, j) for i, j in `ids`, rows of `samples`; spec and samples must outlive it.
class WorkingSetKernel {
 public:
  WorkingSetKernel(const KernelSpec& spec, const Samples& samples, std::vector<Index> ids, int n_threads)
      : spec_(spec), samples_(samples), ids_(std::move(ids)), n_threads_(n_threads),
        columns_(samples.take(ids_.data(), size())) {}

  Index size() const { return static_cast<Index>(ids_.size()); }

  // out[places[c] * stride + j] = K(which[c], j) for c < count and all j.
  template <class T>
  void rows(const Index* which, Index count, T* out, Index stride, const Index* places) const {
    std::vector<Index> ids;
    for (Index c = 0; c < count; ++c) ids.push_back(ids_[which[c]]);
    kernel_block<T>({spec_, samples_, *columns_}, ids.data(), count, 0, size(), OutRows<T>{out, stride, places}, n_threads_);
  }

 private:
  const KernelSpec& spec_;
  const Samples& samples_;
  std::vector<Index> ids_;
  int n_threads_;
  std::unique_ptr<Samples> columns_;
};

}  // namespace multimargin::kernel
