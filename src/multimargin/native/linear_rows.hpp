// Rows of a data matrix, one at a time: dense or CSR, float32 or float64, indices of 32 or 64 bits.
//
// A solver of the linear machine touches a row as often as it touches the row's features in all m weight
// vectors, so a row is first copied into a short list of its non-zeros (of dense rows too). What follows is
// then the same code for all storages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "platform.hpp"

namespace multimargin {

// The non-zeros of one row, with the constant feature that stands for the intercept, if any, as the last.
template <class W>
struct LinearRow {
  std::vector<W> values;
  std::vector<Index> columns;
  Index count = 0;

  void reserve(Index most) {
    values.resize(static_cast<std::size_t>(most));
    columns.resize(static_cast<std::size_t>(most));
  }

  void push(Index column, double value) {
    values[static_cast<std::size_t>(count)] = static_cast<W>(value);
    columns[static_cast<std::size_t>(count)] = column;
    ++count;
  }
};

class LinearRows {
 public:
  LinearRows(Index n, Index d, double constant) : n_(n), d_(d), constant_(constant) {}
  virtual ~LinearRows() = default;
  LinearRows(const LinearRows&) = delete;
  LinearRows& operator=(const LinearRows&) = delete;

  Index rows() const { return n_; }
  Index features() const { return d_ + (constant_ != 0.0); }  // with the constant one

  virtual Index longest() const = 0;  // most non-zeros of a row, the constant included
  virtual void load(Index i, LinearRow<float>& row) const = 0;
  virtual void load(Index i, LinearRow<double>& row) const = 0;
  virtual void prefetch(Index i) const = 0;

  // |x_i|^2
  double norm(Index i, LinearRow<double>& row) const {
    load(i, row);
    double sum = 0.0;
    for (Index k = 0; k < row.count; ++k) sum += row.values[static_cast<std::size_t>(k)] * row.values[static_cast<std::size_t>(k)];
    return sum;
  }

 protected:
  template <class T>
  static void prefetch_values(const T* first, Index count) {
    const Index step = 64 / static_cast<Index>(sizeof(T));
    for (Index k = 0; k < count; k += step) MULTIMARGIN_PREFETCH(first + k);
  }

  template <class W>
  void finish(LinearRow<W>& row) const {
    if (constant_ != 0.0) row.push(d_, constant_);
  }

  Index n_, d_;
  double constant_;
};

// Dense rows. Where most values are zero, single precision reads them from a list of the others, made once: it takes a
// quarter of the data's memory at most (float64; half of it for float32), and a visit reads that much less.
template <class T>
class DenseLinearRows final : public LinearRows {
 public:
  DenseLinearRows(const T* values, Index n, Index d, double constant) : LinearRows(n, d, constant), values_(values) {
    Index total = 0;
    for (Index k = 0; k < n * d; ++k) total += values[k] != T{0};
    if (4 * total <= n * d && d <= std::numeric_limits<std::int32_t>::max()) list(total);
  }
  Index longest() const override { return d_ + 1; }

  void load(Index i, LinearRow<float>& row) const override {
    if (starts_.empty()) return fill(i, row);
    const std::size_t first = starts_[static_cast<std::size_t>(i)], last = starts_[static_cast<std::size_t>(i) + 1];
    row.count = static_cast<Index>(last - first);
    std::copy(listed_.begin() + first, listed_.begin() + last, row.values.begin());
    std::copy(columns_.begin() + first, columns_.begin() + last, row.columns.begin());
    finish(row);
  }
  void load(Index i, LinearRow<double>& row) const override { fill(i, row); }

  void prefetch(Index i) const override {
    if (starts_.empty()) return prefetch_values(values_ + i * d_, d_);
    const std::size_t first = starts_[static_cast<std::size_t>(i)], last = starts_[static_cast<std::size_t>(i) + 1];
    prefetch_values(listed_.data() + first, static_cast<Index>(last - first));
    prefetch_values(columns_.data() + first, static_cast<Index>(last - first));
  }

 private:
  template <class W>
  void fill(Index i, LinearRow<W>& row) const {
    const T* x = values_ + i * d_;
    W* values = row.values.data();
    Index* columns = row.columns.data();
    Index count = 0;
    for (Index f = 0; f < d_; ++f) {  // branchless: dense data may have any share of zeros
      values[count] = static_cast<W>(x[f]);
      columns[count] = f;
      count += x[f] != T{0};
    }
    row.count = count;
    finish(row);
  }

  void list(Index total) {
    starts_.reserve(static_cast<std::size_t>(n_ + 1));
    listed_.reserve(static_cast<std::size_t>(total));
    columns_.reserve(static_cast<std::size_t>(total));
    starts_.push_back(0);
    for (Index i = 0; i < n_; ++i) {
      for (Index f = 0; f < d_; ++f)
        if (const T x = values_[i * d_ + f]; x != T{0}) {
          listed_.push_back(static_cast<float>(x));
          columns_.push_back(static_cast<std::int32_t>(f));
        }
      starts_.push_back(listed_.size());
    }
  }

  const T* values_;
  std::vector<float> listed_;
  std::vector<std::int32_t> columns_;
  std::vector<std::size_t> starts_;  // empty where nothing is listed
};

template <class T, class I>
class SparseLinearRows final : public LinearRows {
 public:
  SparseLinearRows(const T* values, const I* columns, const I* starts, Index n, Index d, double constant)
      : LinearRows(n, d, constant), values_(values), columns_(columns), starts_(starts) {
    for (Index i = 0; i < n; ++i) {
      const Index length = static_cast<Index>(starts[i + 1] - starts[i]);
      longest_ = length > longest_ ? length : longest_;
    }
  }
  Index longest() const override { return longest_ + 1; }
  void load(Index i, LinearRow<float>& row) const override { fill(i, row); }
  void load(Index i, LinearRow<double>& row) const override { fill(i, row); }

  void prefetch(Index i) const override {
    const Index first = static_cast<Index>(starts_[i]), count = static_cast<Index>(starts_[i + 1]) - first;
    prefetch_values(values_ + first, count);
    prefetch_values(columns_ + first, count);
  }

 private:
  template <class W>
  void fill(Index i, LinearRow<W>& row) const {
    const Index first = static_cast<Index>(starts_[i]);
    row.count = static_cast<Index>(starts_[i + 1]) - first;
    for (Index k = 0; k < row.count; ++k) {
      row.values[static_cast<std::size_t>(k)] = static_cast<W>(values_[first + k]);
      row.columns[static_cast<std::size_t>(k)] = static_cast<Index>(columns_[first + k]);
    }
    finish(row);
  }

  const T* values_;
  const I* columns_;
  const I* starts_;
  Index longest_ = 0;
};

}  // namespace multimargin
