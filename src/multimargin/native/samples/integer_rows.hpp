// Rows of small integers as lists of groups for the products of integer_groups.hpp, cut into stretches of features.
// Four rows share one list if most of their groups are not zero.
#pragma once

#include "samples/integer_groups.hpp"

namespace multimargin::samples {

template <class S>
class GroupLists {
 public:
  // Rows of d features; `line_bytes` from one line of a panel to the next; stretches of `stretch` features, a multiple
  // of the group size unless it is d.
  GroupLists(GroupFormat format, Index d, Index line_bytes, Index stretch)
      : format_(format), d_(d), line_bytes_(line_bytes), groups_((d + format.group - 1) / format.group),
        stretch_((stretch + format.group - 1) / format.group), stretches_((groups_ + stretch_ - 1) / stretch_) {}

  // Lists the rows row_of(0), .., row_of(q - 1).
  template <class RowOf>
  void load(Index q, RowOf row_of) {
    blocks_.clear(), ends_.clear(), single_.clear(), joint_.clear(), shifts_.clear();
    for (Index k = 0; k < q;) {
      const int rows = format_.narrow.joint && k + joint_rows <= q ? joint_rows : 1;
      values_.resize(rows * groups_);
      Index present = 0;
      for (int r = 0; r < rows; ++r) present += read(row_of(k + r), values_.data() + r * groups_);
      if (rows > 1 && static_cast<double>(present) > joint_share * static_cast<double>(rows * groups_)) {
        list<joint_rows>(k, values_.data(), joint_);
      } else {
        for (int r = 0; r < rows; ++r) list<1>(k + r, values_.data() + r * groups_, single_);
      }
      k += rows;
    }
  }

  Index stretches() const { return stretches_; }
  Index blocks() const { return static_cast<Index>(blocks_.size()); }
  Index first_row(Index block) const { return blocks_[block].row; }

  // What the shift of the panels subtracts from every product of row k.
  std::int64_t shift(Index k) const { return shifts_[k]; }

  // sums[k * ld + l] += the products over stretch s of the block's k-th row with column l of the panel; products of
  // `period` groups fit 32 bits.
  template <class Sum>
  void add(Index block, Index s, const unsigned char* panel, Sum* sums, Index ld, Index period) const {
    const auto [from, count] = part(block, s);
    const auto& add_groups = std::get<const GroupSums<Sum>&>(std::tie(format_.narrow, format_.wide));
    if (blocks_[block].rows == 1)
      add_groups.one(single_.data() + from, count, panel, sums, ld, period);
    else
      add_groups.joint(joint_.data() + from, count, panel, sums, ld, period);
  }

 private:
  static constexpr double joint_share = 0.6;  // above this share of non-zero groups, a shared list is faster

  struct Block {
    Index row, begin;  // its first row, and where its groups begin
    int rows;
  };

  // Where the groups of a stretch begin, and how many there are.
  std::pair<Index, Index> part(Index block, Index s) const {
    const Index at = block * stretches_ + s, from = s ? ends_[at - 1] : blocks_[block].begin;
    return {from, ends_[at] - from};
  }

  // The values of a row's groups; returns how many are not zero.
  Index read(const S* row, std::int32_t* values) {
    std::int64_t sum = 0;
    if (format_.shift)
      for (Index f = 0; f < d_; ++f) sum += row[f];
    shifts_.push_back(format_.shift * sum);
    return with_group_size(format_.group, [&]<int group>(std::integral_constant<int, group>) {
      return read_groups<group>(row, values);
    });
  }

  template <int group>
  Index read_groups(const S* row, std::int32_t* values) const {
    const Index whole = d_ / group;
    Index present = 0;
    for (Index g = 0; g < whole; ++g) {
      values[g] = pack_group<group>(row + g * group);
      present += values[g] != 0;
    }
    if (whole < groups_) {
      S last[group] = {};
      std::copy(row + whole * group, row + d_, last);
      values[whole] = pack_group<group>(last);
      present += values[whole] != 0;
    }
    return present;
  }

  template <int group>
  static std::int32_t pack_group(const S* x) {
    constexpr int bits = 32 / group;
    constexpr std::uint32_t mask = 0xffffffffu >> (32 - bits);
    std::uint32_t packed = 0;
    for (int e = 0; e < group; ++e) packed |= (static_cast<std::uint32_t>(x[e]) & mask) << (bits * e);
    return static_cast<std::int32_t>(packed);
  }

  // Appends a block of rows: the groups that are not zero in all rows at once.
  template <int rows>
  void list(Index row, const std::int32_t* values, std::vector<RowGroup<rows>>& groups) {
    Index size = static_cast<Index>(groups.size());
    blocks_.push_back({row, size, rows});
    groups.resize(size + groups_);
    for (Index first = 0; first < groups_; first += stretch_) {
      for (Index g = first; g < std::min(first + stretch_, groups_); ++g) {
        RowGroup<rows>& entry = groups[size];  // overwritten by the next one if all zero
        entry.line = static_cast<std::uint32_t>(g * line_bytes_);
        std::int32_t any = 0;
        for (int r = 0; r < rows; ++r) any |= entry.values[r] = values[r * groups_ + g];
        size += any != 0;
      }
      ends_.push_back(size);
    }
    groups.resize(size);
  }

  GroupFormat format_;
  Index d_, line_bytes_, groups_, stretch_, stretches_;  // stretch_ in groups
  std::vector<Block> blocks_;
  std::vector<Index> ends_;  // of each block's stretches
  std::vector<RowGroup<1>> single_;
  std::vector<RowGroup<joint_rows>> joint_;
  std::vector<std::int64_t> shifts_;
  std::vector<std::int32_t> values_;
};

}  // namespace multimargin::samples
