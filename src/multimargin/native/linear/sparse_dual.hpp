// The dual of the linear machine, sparse: a sample has weight on few classes, so that each of a million samples with a
// thousand classes takes only a few numbers.
//
// Row i is alpha_i as (class, alpha_ir < 0) for the classes with weight other than the label, and alpha_{i,y} beside
// them. If rows sum to zero, that is minus the sum of the others (of crammer-singer exactly C_i if z_{i,y} = 0).
#pragma once

#include "base/platform.hpp"

namespace multimargin::linear {

class SparseDual {
 public:
  struct Entry {
    std::int32_t r;
    double alpha;
  };

  // Samples with equal i % parts share memory: each part may be changed by its own thread.
  SparseDual(Index n, int parts) : rows_(n), pools_(parts) {}

  Index size() const { return static_cast<Index>(rows_.size()); }
  int parts() const { return static_cast<int>(pools_.size()); }
  Index count(Index i) const { return row(i).count; }
  double own(Index i) const { return row(i).own; }
  const Entry* entries(Index i) const { return pools_[part(i)].entries.data() + row(i).first; }
  bool is_zero(Index i) const { return row(i).is_zero(); }

  // Number of samples with alpha_i != 0.
  Index support() const {
    Index sum = 0;
    for (const Pool& pool : pools_) sum += pool.support;
    return sum;
  }

  // max_ir |alpha_ir|
  double largest() const {
    double most = 0.0;
    for (Index i = 0; i < size(); ++i) {
      most = std::max(most, own(i));
      for (const Entry *entry = entries(i), *end = entry + count(i); entry != end; ++entry)
        most = std::max(most, -entry->alpha);
    }
    return most;
  }

  void prefetch(Index i) const { MULTIMARGIN_PREFETCH(&row(i)); }

  void set(Index i, double own, const Entry* entries, Index count) {
    Row& row = rows_[i];
    Pool& pool = pools_[part(i)];
    if (count > row.room) pool.grow(row, count);
    pool.support += row.is_zero();
    row.own = own;
    row.count = static_cast<std::int32_t>(count);
    pool.support -= row.is_zero();
    std::copy(entries, entries + count, pool.entries.begin() + row.first);
  }

 private:
  struct Row {
    double own = 0.0;
    std::int64_t first = 0;
    std::int32_t count = 0, room = 0;

    bool is_zero() const { return own == 0.0 && count == 0; }
  };

  struct Pool {
    std::vector<Entry> entries;
    Index support = 0;                            // rows that are not zero
    std::vector<std::vector<std::int64_t>> free;  // places of 2^level entries

    // Gives the row room for `count` entries. Its old place is reused for another row of that size.
    void grow(Row& row, Index count) {
      if (row.room > 0) {
        const std::size_t level = level_of(row.room);
        if (free.size() <= level) free.resize(level + 1);
        free[level].push_back(row.first);
      }
      const std::size_t level = level_of(count);
      row.room = std::int32_t{1} << level;
      if (level < free.size() && !free[level].empty()) {
        row.first = free[level].back();
        free[level].pop_back();
      } else {
        row.first = static_cast<std::int64_t>(entries.size());
        entries.resize(entries.size() + row.room);
      }
    }

    static std::size_t level_of(Index count) {
      std::size_t level = 0;
      while ((Index{1} << level) < count) ++level;
      return level;
    }
  };

  const Row& row(Index i) const { return rows_[i]; }
  std::size_t part(Index i) const {
    return pools_.size() == 1 ? 0 : i % pools_.size();  // a comparison is faster than a division
  }

  std::vector<Row> rows_;
  std::vector<Pool> pools_;
};

}  // namespace multimargin::linear
