// Kernel values of a working set against itself: rows, computed a few at a time, and squares between some samples.
#pragma once

#include "base/row_loops.hpp"
#include "kernel/kernel_block.hpp"

namespace multimargin::kernel {

// out (count, count): the kernel between some samples. T may be fixed-point numbers.
template <class T>
struct KernelSquare {
  const std::int32_t* samples;
  Index count;
  T* out;
};

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

  // Fills one square, on this thread.
  template <class T>
  void fill(const KernelSquare<T>& square) const {
    const std::vector<Index> ids(square.samples, square.samples + square.count);
    const auto own = samples_.take(ids.data(), square.count);
    kernel_square<T>({spec_, *own, *own}, square.out, square.count, 1);
  }

  // Fills all squares, on threads.
  template <class T>
  void fill(const std::vector<KernelSquare<T>>& squares) const {
    struct Part {
      std::size_t square;
      Index first;
    };
    std::vector<Part> parts;
    std::vector<std::unique_ptr<Samples>> members;
    double flops = 0.0;
    for (std::size_t s = 0; s < squares.size(); ++s) {
      const std::vector<Index> ids(squares[s].samples, squares[s].samples + squares[s].count);
      members.push_back(samples_.take(ids.data(), squares[s].count));
      for (Index first = 0; first < squares[s].count; first += kPartRows) parts.push_back({s, first});
      flops += samples_.value_flops(samples_) * static_cast<double>(ids.size()) * static_cast<double>(ids.size());
    }
    parallel_tasks(static_cast<Index>(parts.size()), worthwhile_threads(n_threads_, flops), [&] {
      return [&](Index task) {
        const Part& part = parts[task];
        const Samples& own = *members[part.square];
        const KernelOperands operands{spec_, own, own};
        with_raw_type(operands, [&]<class Raw>(std::type_identity<Raw>) {
          fill_rows<Raw>(operands, part.first, squares[part.square]);
        });
      };
    });
  }

 private:
  static constexpr Index kPartRows = 128;  // of a square, computed at a time

  // Rows first .. first + kPartRows - 1 of a square, whose samples are those of the operands.
  template <class Raw, class T>
  static void fill_rows(const KernelOperands& operands, Index first, const KernelSquare<T>& square) {
    using Value = std::conditional_t<std::is_same_v<T, double>, double, float>;
    Index rows[kPartRows];
    std::iota(rows, rows + kPartRows, first);
    const Index q = std::min(kPartRows, square.count - first);
    KernelTiles<Raw, Value> tiles(operands);
    tiles.load(rows, q);
    const Index columns = operands.b.tile_shape(q, square.count, false).columns;
    for (Index from = 0; from < square.count; from += columns) {
      const Index to = std::min(from + columns, square.count);
      const Value* values = tiles.evaluate(from, to);
      for (Index k = 0; k < q; ++k)
        store_row(values + k * tiles.row_stride(), to - from, square.out + (first + k) * square.count + from);
    }
  }

  KernelSpec spec_;
  const Samples& samples_;
  int n_threads_;
};

}  // namespace multimargin::kernel
