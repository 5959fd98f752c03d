// Kernel rows for descent class by class: where they come from, and which are kept between rounds.
#pragma once

#include "base/row_loops.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

// Where the kernel of a block's samples is found: K_ij = rows[slots[i] * stride + ids[j]]. A sample whose slot is -1
// has no row and cannot move. If rows is null, K is computed.
template <class T>
struct KernelSource {
  const T* rows = nullptr;
  Index stride = 0;
  const Index* slots = nullptr;
  const Index* ids = nullptr;

  bool has_row(Index i) const { return !slots || slots[i] >= 0; }
  const T* row(Index i) const { return rows + slots[i] * stride; }
  Index id(Index i) const { return ids ? ids[i] : i; }
};

// The samples listed for one class, and those kernel rows between them that were needed so far. A class has some
// hundreds of samples, so its rows are short and cost little memory traffic in later rounds.
template <class T>
class ClassRows {
 public:
  explicit ClassRows(Index most_values) : most_values_(most_values) {}

  Index size() const { return static_cast<Index>(ids_.size()); }
  const std::int32_t* ids() const { return ids_.data(); }

  void add(Index id) {
    ids_.push_back(static_cast<std::int32_t>(id));
    rows_.emplace_back();
    used_.push_back(0);
  }

  // Keeps the members `kept` (positions, ascending).
  void retain(const std::vector<std::int32_t>& kept) {
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const std::size_t j = kept[k];
      ids_[k] = ids_[j];
      used_[k] = used_[j];
      std::vector<T>& row = rows_[j];
      const auto known = std::lower_bound(kept.begin(), kept.end(), static_cast<std::int32_t>(row.size()));
      for (auto at = kept.begin(); at != known; ++at) row[at - kept.begin()] = row[*at];
      row.resize(known - kept.begin());
      if (j != k) rows_[k] = std::move(row);
    }
    ids_.resize(kept.size());
    rows_.resize(kept.size());
    used_.resize(kept.size());
    values_ = 0;
    for (const auto& row : rows_) values_ += static_cast<Index>(row.size());
  }

  // Whether the kernel row of member j against all members is here.
  bool has_row(Index j) const { return rows_[j].size() == ids_.size(); }

  // The kernel row of member j against all members, given its row against all samples. Null at the first use, because
  // many rows have no second, and if no memory is left for it.
  const T* row(Index j, const T* full) {
    std::vector<T>& row = rows_[j];
    const std::size_t known = row.size();
    if (known == ids_.size()) return row.data();
    if (!std::exchange(used_[j], 1)) return nullptr;
    const Index missing = size() - static_cast<Index>(known);
    if (values_ + missing > most_values_) return nullptr;
    values_ += missing;
    if (row.capacity() < ids_.size()) row.reserve(ids_.size() + ids_.size() / 4);
    row.resize(ids_.size());
    gather_row(full, ids_.data() + known, missing, row.data() + known);
    return row.data();
  }

 private:
  Index most_values_, values_ = 0;  // of all rows
  std::vector<std::int32_t> ids_;
  std::vector<std::vector<T>> rows_;  // each against the first members
  std::vector<char> used_;
};

}  // namespace multimargin::solvers
