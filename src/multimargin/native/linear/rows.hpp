// Rows of a data matrix, one at a time: dense or CSR, float32 or float64, indices of 32 or 64 bits.
//
// A solver of the linear machine sees a row as the list of its non-zeros, so that one code serves all storages. The
// list is read in place. Only values of another type than the weights, and dense rows with some zeros, are copied for
// the visit. If there are few float64 values (at most 32 MB as float32), they are converted once: on text that saves a
// seventh of a visit.
#pragma once

#include "base/platform.hpp"

namespace multimargin::linear {

// The columns of a row that has all of them.
struct AllColumns {
  MULTIMARGIN_INLINE Index operator[](Index k) const { return k; }
};

// x_k at columns_k for k in [0, count), and the constant feature that stands for the intercept, if any.
template <class W, class Columns>
struct RowTerms {
  const W* values;
  Columns columns;
  Index count;
  W constant;
  Index constant_column;

  template <class Term>
  MULTIMARGIN_INLINE void each(Term term) const {
    for (Index k = 0; k < count; ++k) term(values[k], static_cast<Index>(columns[k]));
    if (constant != W{0}) term(constant, constant_column);
  }
};

// One row, and room for the parts of it that have to be copied.
template <class W>
class LinearRow {
 public:
  void reserve(Index most) {
    own_values.resize(most);
    own_columns.resize(most);
  }

  void refer(const W* values, AllColumns, Index count) {
    values_ = values, narrow_ = nullptr, wide_ = nullptr, count_ = count;
  }
  void refer(const W* values, const std::int32_t* columns, Index count) {
    values_ = values, narrow_ = columns, wide_ = nullptr, count_ = count;
  }
  void refer(const W* values, const std::int64_t* columns, Index count) {
    values_ = values, narrow_ = nullptr, wide_ = columns, count_ = count;
  }
  void add_constant(Index column, double value) {
    constant_ = static_cast<W>(value);
    constant_column_ = column;
  }

  // use(RowTerms) with the columns in their own type.
  template <class Use>
  MULTIMARGIN_INLINE auto with_terms(Use use) const {
    const auto terms = [&]<class Columns>(Columns columns) MULTIMARGIN_INLINE_LAMBDA {
      return use(RowTerms<W, Columns>{values_, columns, count_, constant_, constant_column_});
    };
    if (narrow_ != nullptr) return terms(narrow_);
    if (wide_ != nullptr) return terms(wide_);
    return terms(AllColumns{});
  }

  std::vector<W> own_values;
  std::vector<std::int32_t> own_columns;

 private:
  const W* values_ = nullptr;
  const std::int32_t* narrow_ = nullptr;
  const std::int64_t* wide_ = nullptr;
  Index count_ = 0, constant_column_ = 0;
  W constant_{0};
};

template <class T, class W>
MULTIMARGIN_CLONES void convert_values(const T* from, Index count, W* to) {
  for (Index k = 0; k < count; ++k) to[k] = static_cast<W>(from[k]);
}

class LinearRows {
 public:
  LinearRows(Index n, Index d, double constant) : n_(n), d_(d), constant_(constant) {}
  virtual ~LinearRows() = default;
  LinearRows(const LinearRows&) = delete;
  LinearRows& operator=(const LinearRows&) = delete;

  Index rows() const { return n_; }
  Index features() const { return d_ + (constant_ != 0.0); }  // with the constant one
  double constant() const { return constant_; }

  virtual Index longest() const = 0;  // most non-zeros of a row
  virtual void load(Index i, LinearRow<float>& row) const = 0;
  virtual void load(Index i, LinearRow<double>& row) const = 0;
  virtual void prefetch(Index i, bool single) const = 0;  // for a row of floats, or of doubles

  // |x_i|^2
  double norm(Index i, LinearRow<double>& row) const {
    load(i, row);
    double sum = 0.0;
    row.with_terms([&](const auto& terms) { terms.each([&](double x, Index) { sum += x * x; }); });
    return sum;
  }

 protected:
  static constexpr Index kFewValues = Index{1} << 23;

  // The values as floats, if they have another type and are few; else nothing.
  template <class T>
  static std::vector<float> as_floats(const T* values, Index count) {
    std::vector<float> floats;
    if constexpr (!std::is_same_v<T, float>) {
      if (count <= kFewValues) {
        floats.resize(count);
        convert_values(values, count, floats.data());
      }
    }
    return floats;
  }

  template <class T>
  static void prefetch_values(const T* first, Index count) {
    const Index step = 64 / static_cast<Index>(sizeof(T));
    for (Index k = 0; k < count; k += step) MULTIMARGIN_PREFETCH(first + k);
  }

  // Makes `row` refer to the list, with its values converted if they have to be.
  template <class T, class Columns, class W>
  void refer(LinearRow<W>& row, const T* values, Columns columns, Index count) const {
    if constexpr (std::is_same_v<T, W>) {
      row.refer(values, columns, count);
    } else {
      convert_values(values, count, row.own_values.data());
      row.refer(row.own_values.data(), columns, count);
    }
    row.add_constant(d_, constant_);
  }

  Index n_, d_;
  double constant_;
};

// Dense rows. If hardly any value is zero, all values are used. If most are zero, single precision reads the non-zeros
// from a list made once; the list takes at most a quarter of the data's memory (half of it for float32 data), and a
// visit reads that much less. In between, every visit picks the non-zeros.
template <class T>
class DenseLinearRows final : public LinearRows {
 public:
  DenseLinearRows(const T* values, Index n, Index d, double constant) : LinearRows(n, d, constant), values_(values) {
    if (d > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("dense rows have 2^31 - 1 features at most");
    Index total = 0;
    for (Index k = 0; k < n * d; ++k) total += values[k] != T{0};
    full_ = 10 * total >= kFull * n * d;
    if (4 * total <= n * d) list(total);
    if (full_) floats_ = as_floats(values, n * d);
  }
  Index longest() const override { return d_; }

  void load(Index i, LinearRow<float>& row) const override {
    if (floats_.empty()) return fill(i, row);
    if (starts_.empty()) return refer(row, floats_.data() + i * d_, AllColumns{}, d_);
    const std::int32_t* columns = columns_.data() + starts_[i];
    refer(row, floats_.data() + starts_[i], columns, starts_[i + 1] - starts_[i]);
  }
  void load(Index i, LinearRow<double>& row) const override { fill(i, row); }

  void prefetch(Index i, bool single) const override {
    if (!single || floats_.empty()) return prefetch_values(values_ + i * d_, d_);
    if (starts_.empty()) return prefetch_values(floats_.data() + i * d_, d_);
    prefetch_values(floats_.data() + starts_[i], starts_[i + 1] - starts_[i]);
    prefetch_values(columns_.data() + starts_[i], starts_[i + 1] - starts_[i]);
  }

 private:
  static constexpr Index kFull = 7;  // if more tenths of the values are not zero, picking costs more than zeros do

  template <class W>
  void fill(Index i, LinearRow<W>& row) const {
    const T* x = values_ + i * d_;
    if (full_) return refer(row, x, AllColumns{}, d_);
    W* values = row.own_values.data();
    std::int32_t* columns = row.own_columns.data();
    Index count = 0;
    for (Index f = 0; f < d_; ++f) {  // branch-free: dense data may have any share of zeros
      values[count] = static_cast<W>(x[f]);
      columns[count] = static_cast<std::int32_t>(f);
      count += x[f] != T{0};
    }
    refer(row, static_cast<const W*>(values), static_cast<const std::int32_t*>(columns), count);
  }

  void list(Index total) {
    starts_.reserve(n_ + 1);
    floats_.reserve(total);
    columns_.reserve(total);
    starts_.push_back(0);
    for (Index i = 0; i < n_; ++i) {
      for (Index f = 0; f < d_; ++f)
        if (const T x = values_[i * d_ + f]; x != T{0}) {
          floats_.push_back(static_cast<float>(x));
          columns_.push_back(static_cast<std::int32_t>(f));
        }
      starts_.push_back(static_cast<Index>(floats_.size()));
    }
  }

  const T* values_;
  bool full_;                          // all values are used
  std::vector<float> floats_;          // as_floats if full, or the list; may be empty
  std::vector<std::int32_t> columns_;  // of the list
  std::vector<Index> starts_;          // of the list's rows; empty if nothing is listed
};

template <class T, class I>
class SparseLinearRows final : public LinearRows {
 public:
  SparseLinearRows(const T* values, const I* columns, const I* starts, Index n, Index d, double constant)
      : LinearRows(n, d, constant), values_(values), columns_(columns), starts_(starts) {
    for (Index i = 0; i < n; ++i) longest_ = std::max(longest_, count(i));
    floats_ = as_floats(values + starts[0], static_cast<Index>(starts[n] - starts[0]));
  }
  Index longest() const override { return longest_; }

  void load(Index i, LinearRow<float>& row) const override {
    if (floats_.empty()) return fill(i, row);
    refer(row, floats_.data() + first(i) - starts_[0], columns_ + first(i), count(i));
  }
  void load(Index i, LinearRow<double>& row) const override { fill(i, row); }

  void prefetch(Index i, bool single) const override {
    if (single && !floats_.empty())
      prefetch_values(floats_.data() + first(i) - starts_[0], count(i));
    else
      prefetch_values(values_ + first(i), count(i));
    prefetch_values(columns_ + first(i), count(i));
  }

 private:
  Index first(Index i) const { return static_cast<Index>(starts_[i]); }
  Index count(Index i) const { return static_cast<Index>(starts_[i + 1]) - first(i); }

  template <class W>
  void fill(Index i, LinearRow<W>& row) const {
    refer(row, values_ + first(i), columns_ + first(i), count(i));
  }

  const T* values_;
  const I* columns_;
  const I* starts_;
  std::vector<float> floats_;  // as_floats
  Index longest_ = 0;
};

// Reads rows; the next one can be read ahead of its turn.
template <class W>
class RowReader {
 public:
  explicit RowReader(const LinearRows* rows) : rows_(rows) {
    for (LinearRow<W>& row : row_) row.reserve(rows->longest());
  }

  const LinearRow<W>& read(Index i) {
    if (sample_[now_] == i) return row_[now_];
    if (sample_[1 - now_] == i)
      now_ = 1 - now_;
    else
      load(i, now_);
    return row_[now_];
  }

  // Reads the row that will be needed next; the current one stays valid.
  const LinearRow<W>& read_ahead(Index i) {
    load(i, 1 - now_);
    return row_[1 - now_];
  }

  // Prefetches a row that will be read soon.
  void foresee(Index i) const { rows_->prefetch(i, std::is_same_v<W, float>); }

 private:
  void load(Index i, int place) {
    rows_->load(i, row_[place]);
    sample_[place] = i;
  }

  const LinearRows* rows_;
  LinearRow<W> row_[2];
  Index sample_[2] = {-1, -1};
  int now_ = 0;
};

}  // namespace multimargin::linear
