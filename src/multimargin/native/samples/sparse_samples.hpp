// Sparse samples: compressed rows (CSR) and a copy by compressed columns (CSC). A row of a visits only the columns of b
// that it has itself, so the work is proportional to the number of common features.
#pragma once

#include "samples/samples.hpp"

namespace multimargin::samples {

// A matrix compressed along its first direction: line i is positions begin(i)..end(i)-1 of
// `indices` and `data`; the indices of a line may come in any order.
template <class T, class I>
struct Compressed {
  const T* data;
  const I* indices;
  const I* pointers;

  Index begin(Index line) const { return pointers[line]; }
  Index end(Index line) const { return pointers[line + 1]; }
};

// The same in memory of its own.
template <class T, class I>
struct CompressedCopy {
  std::vector<T> data;
  std::vector<I> indices, pointers;

  Compressed<T, I> view() const { return {data.data(), indices.data(), pointers.data()}; }

  // The columns of `rows` (n x d), each with ascending indices.
  static CompressedCopy transpose(const Compressed<T, I>& rows, Index n, Index d) {
    CompressedCopy t;
    const Index nnz = rows.pointers[n];
    t.data.resize(nnz), t.indices.resize(nnz), t.pointers.assign(d + 1, 0);
    for (Index p = 0; p < nnz; ++p) ++t.pointers[rows.indices[p] + 1];
    for (Index f = 0; f < d; ++f) t.pointers[f + 1] += t.pointers[f];
    std::vector<I> next(t.pointers.begin(), t.pointers.end() - 1);
    for (Index i = 0; i < n; ++i)
      for (Index p = rows.begin(i); p < rows.end(i); ++p) {
        const Index to = next[rows.indices[p]]++;
        t.data[to] = rows.data[p], t.indices[to] = static_cast<I>(i);
      }
    return t;
  }
};

// What two sparse samples need of each other, for any data and index types.
class SparseRows : public Samples, public TileSource<double> {
 public:
  struct Entry {
    Index feature;
    double value;
  };

  using Samples::Samples;
  RawType raw_type(const Samples&) const final { return RawType::float64; }
  // Row i in `row`.
  virtual void copy_row(Index i, std::vector<Entry>& row) const = 0;
  virtual Index nnz() const = 0;

 protected:
  double entries_per_row() const { return static_cast<double>(nnz()) / static_cast<double>(std::max<Index>(n(), 1)); }
  static double entries_per_row(const Samples& a) { return static_cast<const SparseRows&>(a).entries_per_row(); }
};

// Compressed rows that `Kind` knows how to compare; it is made from the same four arguments.
template <class Kind, class T, class I>
class CompressedRows : public SparseRows {
 public:
  using Entry = SparseRows::Entry;

  // rows: n lines with indices below d. The caller checks them, and `owner` keeps them alive.
  CompressedRows(Compressed<T, I> rows, Index n, Index d, std::shared_ptr<const void> owner)
      : SparseRows(n, d), rows_(rows), owner_(std::move(owner)) {}

  std::unique_ptr<Samples> copy_rows(const Index* ids, Index count) const override {
    auto copy = std::make_shared<CompressedCopy<T, I>>();
    auto& rows = *copy;
    rows.pointers.assign(1, 0);
    for (Index k = 0; k < count; ++k) {
      const Index begin = rows_.begin(ids[k]), end = rows_.end(ids[k]);
      if (static_cast<Index>(rows.data.size()) + end - begin > std::numeric_limits<I>::max())
        throw std::length_error("take: too many entries for the index type of these samples");
      rows.data.insert(rows.data.end(), rows_.data + begin, rows_.data + end);
      rows.indices.insert(rows.indices.end(), rows_.indices + begin, rows_.indices + end);
      rows.pointers.push_back(static_cast<I>(rows.data.size()));
    }
    return std::make_unique<Kind>(rows.view(), count, this->d(), copy);
  }

  void copy_row(Index i, std::vector<Entry>& row) const override {
    row.clear();
    for (Index p = rows_.begin(i); p < rows_.end(i); ++p)
      row.push_back({static_cast<Index>(rows_.indices[p]), static_cast<double>(rows_.data[p])});
  }

  Index nnz() const override { return rows_.pointers[this->n()]; }

 protected:
  Compressed<T, I> rows_;

 private:
  std::shared_ptr<const void> owner_;
};

// Sparse samples of any types that are compared by their common features.
class SparseProductRows {
 public:
  virtual ~SparseProductRows() = default;
};

template <class T, class I>
class SparseSamples final : public CompressedRows<SparseSamples<T, I>, T, I>, public SparseProductRows {
 public:
  using Entry = SparseRows::Entry;

  SparseSamples(Compressed<T, I> rows, Index n, Index d, std::shared_ptr<const void> owner)
      : CompressedRows<SparseSamples, T, I>(rows, n, d, std::move(owner)),
        columns_(CompressedCopy<T, I>::transpose(rows, n, d)) {}

  bool comparable_with(const Samples& other) const override {
    return dynamic_cast<const SparseProductRows*>(&other) != nullptr;
  }

  // |a-b|_1 = |a|_1 + |b|_1 + sum over common features of (|a-b| - |a| - |b|).
  Expansion expansion(Comparison comparison) const override {
    if (comparison == Comparison::product) return {};
    return {this->norms(comparison), comparison == Comparison::squared_distance ? -2.0 : 1.0};
  }

  // One row at a time. Its sums fit the second-level cache. Tiles are not too narrow, because finding where a tile cuts
  // a column costs as much as many additions.
  TileShape tile_shape(Index, Index width, bool split_rows) const override {
    constexpr Index least = 2048, largest = 32768;
    return {1, split_rows ? largest : shared_columns(width, 1, least, largest)};
  }

  double value_flops(const Samples& a) const override {
    return this->transform_flops + 4 * this->entries_per_row(a) * this->entries_per_row(*this) / this->d();
  }

  std::unique_ptr<RowTiles<double>> row_tiles(const Samples& a, Comparison comparison) const override {
    return std::make_unique<Tiles>(static_cast<const SparseRows&>(a), *this, comparison);
  }

 protected:
  std::vector<double> compute_norms(Comparison comparison) const override {
    std::vector<double> sums(this->n());
    for (Index i = 0; i < this->n(); ++i)
      for (Index p = this->rows_.begin(i); p < this->rows_.end(i); ++p) {
        const auto x = static_cast<double>(this->rows_.data[p]);
        sums[i] += comparison == Comparison::l1_distance ? std::fabs(x) : x * x;
      }
    return sums;
  }

 private:
  class Tiles final : public RowTiles<double> {
   public:
    Tiles(const SparseRows& a, const SparseSamples& b, Comparison comparison) : a_(a), b_(b), comparison_(comparison) {}

    void load(const Index* ids, Index q) override { ids_.assign(ids, ids + q); }

    void fill(Index begin, Index end, double* tile, Index ld) override {
      for (std::size_t k = 0; k < ids_.size(); ++k) {
        double* out = tile + static_cast<Index>(k) * ld;
        std::fill_n(out, end - begin, 0.0);
        a_.copy_row(ids_[k], row_);
        for (const auto& [feature, v] : row_) {
          if (comparison_ == Comparison::l1_distance)
            b_.add_column(feature, begin, end, out,
                          [v = v](double x) { return std::fabs(v - x) - std::fabs(v) - std::fabs(x); });
          else
            b_.add_column(feature, begin, end, out, [v = v](double x) { return v * x; });
        }
      }
    }

   private:
    const SparseRows& a_;
    const SparseSamples& b_;
    Comparison comparison_;
    std::vector<Index> ids_;
    std::vector<Entry> row_;
  };

  // sums[j - begin] += term(x_jf) for the samples begin <= j < end that have feature f.
  template <class Term>
  void add_column(Index f, Index begin, Index end, double* sums, Term term) const {
    const I* indices = columns_.indices.data();
    Index p = columns_.pointers[f], last = columns_.pointers[f + 1];
    if (begin > 0) p = std::lower_bound(indices + p, indices + last, begin) - indices;
    if (end < this->n()) last = std::lower_bound(indices + p, indices + last, end) - indices;
    for (; p < last; ++p) sums[indices[p] - begin] += term(columns_.data[p]);
  }

  CompressedCopy<T, I> columns_;
};

}  // namespace multimargin::samples
