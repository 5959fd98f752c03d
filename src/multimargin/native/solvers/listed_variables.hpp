// Which variables alpha_ir of a block take part in a descent, and the kernel between the samples of one class.
//
// The dual's Hessian is block diagonal over classes: K between the samples whose variable of that class may move. At a
// solution a sample has two or three classes with alpha_ir != 0 or close to it; all others are held at zero. So the
// class blocks have about (2.5 q)^2 / m entries, and a step in one class touches 2.5 q / m of the q samples.
#pragma once

#include "base/reduce.hpp"
#include "base/row_loops.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

// Gradients are of type Number.
template <class Machine, class T, class Number = double>
class ListedVariables {
 public:
  using Real = Number;

  // Lists the classes of every sample that can move soon (Machine::listed). A sample with too few of them to move is
  // left out. Kernel rows of single classes are copied to `room`. If the kernel blocks of all classes do not fit there,
  // or have more entries than K itself, all variables are listed and all classes use K. If K is not there, the kernel
  // blocks of the classes, or else K, are computed in `room`.
  ListedVariables(const Subproblem<T>& b, double width, T* room, Index room_size)
      : ListedVariables(b, b.q, width, room, room_size) {}

  // The same for samples that take steps together with others, `rows` samples in all: K has a row for each of them.
  ListedVariables(const Subproblem<T>& b, Index rows, double width, T* room, Index room_size)
      : b_(checked(b)), rows_(rows), samples_(b.q), classes_(b.m), room_(room), room_end_(room + room_size) {
    list(width);
    if (blocks_fit(room_size))
      list_members();
    else
      list_all();
    load();
    if (b.kernel) compute_kernel();
  }

  Index samples() const { return b_.q; }
  Index sample(Index k) const { return k; }
  Index count(Index i) const { return samples_[i].count; }  // listed variables of the sample, classes ascending
  Index own(Index i) const { return samples_[i].own; }      // position of its own class among them, or -1

  // K between sample i and sample j, whose variables c and d are of one class, is kernel_row(i, c)[column(j, d)].
  const T* kernel_row(Index i, Index c) const {
    const Variable& variable = variables_[samples_[i].first + c];
    const Class& own = classes_[variable.r];
    return own.block ? own.block + (variable.at - own.first) * own.size : whole_row(i);
  }
  Index column(Index j, Index d) const {
    const Variable& variable = variables_[samples_[j].first + d];
    return column(j, variable.r, variable.at);
  }
  // The same for a variable of class r whose gradient is at `at`.
  Index column(Index j, Index r, Index at) const { return classes_[r].block ? at - classes_[r].first : j; }

  // Value of the sample's variable c, and where its gradient is.
  double value(Index i, Index c) const { return variables_[samples_[i].first + c].alpha; }
  std::int32_t gradient_place(Index i, Index c) const { return variables_[samples_[i].first + c].at; }

  Index class_size(Index r) const { return classes_[r].size; }  // samples that have the class listed

  bool lists_all() const { return classes_.front().whole; }  // every class of every sample: variable r has class r

  // Class of the sample's variable c.
  Index label(Index i, Index c) const { return variables_[samples_[i].first + c].r; }

  // Gradient and values of the variables of sample i.
  MULTIMARGIN_INLINE void read(Index i, double* G, double* alpha) const {
    const Sample& s = samples_[i];
    const Variable* variable = variables_.data() + s.first;
    for (Index c = 0; c < s.count; ++c) G[c] = G_[variable[c].at], alpha[c] = variable[c].alpha;
  }

  // Fetches the kernel rows of sample i from memory.
  MULTIMARGIN_INLINE void prefetch(Index i) const {
    if (classes_.front().whole) return fetch(whole_row(i), b_.q);
    for_variables(i, [&](const Variable& variable) {
      const Class& c = classes_[variable.r];
      if (c.block)
        fetch(c.block + (variable.at - c.first) * c.size, c.size);
      else
        prefetch(i, variable.r);
    });
  }
  // The same for one class, if kernel rows are copied or used whole; i may be a sample whose variables are not here.
  MULTIMARGIN_INLINE void prefetch(Index i, Index r) const {
    const Class& c = classes_[r];
    const T* row = c.whole ? whole_row(i) : copies_[i * b_.m + r];
    if (row != nullptr && row != room_end_) fetch(row, c.size);
  }

  // What `values`, one per variable in the order of the gradient, has of sample i is added to out.
  template <class S>
  void add_values(Index i, const std::vector<S>& values, double* out) const {
    const Sample& s = samples_[i];
    for (Index c = 0; c < s.count; ++c) out[c] += values[variables_[s.first + c].at];
  }

  // Gives the variables of sample i the values alpha, and adds K[i, :] delta_r to the gradient of the classes that
  // change. Returns the work.
  Index write(Index i, const double* alpha) {
    const Sample& s = samples_[i];
    Index work = 0;
    for (Index c = 0; c < s.count; ++c) {
      Variable& variable = variables_[s.first + c];
      const double delta = alpha[c] - variable.alpha;
      if (delta == 0.0) continue;
      variable.alpha = alpha[c];
      work += add_variable(i, variable, delta, G_);
    }
    return work;
  }

  // The same for two samples at once.
  Index write_two(Index i, const double* alpha, Index j, const double* other) {
    if (!classes_.front().whole) return write(i, alpha) + write(j, other);
    Variable *first = variables_.data() + samples_[i].first, *second = variables_.data() + samples_[j].first;
    Index work = 0;
    for (Index r = 0; r < b_.m; ++r) {
      const double a = alpha[r] - first[r].alpha, b = other[r] - second[r].alpha;
      if (a == 0.0 && b == 0.0) continue;
      first[r].alpha = alpha[r], second[r].alpha = other[r];
      add_two_rows(whole_row(i), whole_row(j), a, b, classes_[r].size, G_.data() + classes_[r].first);
      work += 2 * classes_[r].size;
    }
    return work;
  }

  // Gives the variables of sample i the values alpha; the gradient follows by add_to_gradient.
  void place(Index i, const double* alpha) {
    const Sample& s = samples_[i];
    for (Index c = 0; c < s.count; ++c) variables_[s.first + c].alpha = alpha[c];
  }

  // The values of the variables, in the order of the gradient.
  void copy_values(std::vector<double>& out) const {
    out.resize(G_.size());  // entries between classes stay zero
    for (const Variable& variable : variables_) out[variable.at] = variable.alpha;
  }
  std::vector<Real>& gradient() { return G_; }
  const std::vector<Real>& gradient() const { return G_; }

  // What `values`, in the same order, has of sample i.
  void read_values(Index i, const std::vector<double>& values, double* out) const {
    const Sample& s = samples_[i];
    for (Index c = 0; c < s.count; ++c) out[c] = values[variables_[s.first + c].at];
  }

  // Leaves the part t of the step d of sample i, whose product with K the gradient has in full. Returns the work.
  Index shorten(Index i, double t, std::vector<double>& d) {
    Index work = 0;
    for_variables(i, [&](const Variable& variable) {
      double& step = d[variable.at];
      if (step != 0.0) work += add_variable(i, variable, (t - 1.0) * step, G_);
      step *= t;
    });
    return work;
  }

  // G += t h.
  template <class S>
  void add_to_gradient(double t, const std::vector<S>& h) {
    add_scaled(h.data(), std::ssize(h), t, G_.data());
  }

  // h += K[i, members of class r] delta; i may be a sample whose variables are not here. Returns the work.
  // A kernel row is copied at its second use, because many are used only once. Copies lie one behind the other: memory
  // that is touched for the first time costs more than the copy.
  template <class S>
  Index add_row(Index i, Index r, double delta, std::vector<S>& h) {
    const Class& c = classes_[r];
    const T* row = whole_row(i);
    S* out = h.data() + c.first;
    if (c.whole) {
      add_scaled(row, c.size, delta, out);
      return c.size;
    }
    T*& copy = copies_[i * b_.m + r];
    if (copy == room_end_ && c.size <= room_end_ - room_) {
      copy = std::exchange(room_, room_ + c.size);
      gather_row(row, c.members.data(), c.size, copy);
    }
    if (copy == nullptr || copy == room_end_) {
      copy = room_end_;
      add_gathered(row, c.members.data(), c.size, delta, out);
    } else {
      add_scaled(copy, c.size, delta, out);
    }
    return c.size;
  }

  // Copies the kernel rows of the classes of `samples`, which are about to move, on threads: as many as there is room
  // for, and none if threads do not pay. Then add_row need not gather them.
  void copy_rows(const std::vector<Index>& samples, int n_threads) {
    if (copies_.empty() || n_threads == 1) return;
    std::vector<Copy> found;
    Index values = 0;
    for (const Index i : samples)
      for_variables(i, [&](const Variable& variable) {
        const Class& c = classes_[variable.r];
        T*& copy = copies_[i * b_.m + variable.r];
        const bool is_there = copy != nullptr && copy != room_end_;
        if (c.whole || is_there || values + c.size > room_end_ - room_) return;
        found.push_back({&copy, whole_row(i), &c, values});
        values += c.size;
      });
    constexpr double flops = 4.0;  // of a value that is gathered
    const int threads = worthwhile_threads(n_threads, flops * static_cast<double>(values));
    if (threads == 1) return;
    parallel_ranges(std::ssize(found), 8, threads, [&](Index begin, Index end) {
      for (Index k = begin; k < end; ++k) {
        const auto& [copy, row, c, first] = found[k];
        *copy = room_ + first;
        gather_row(row, c->members.data(), c->size, *copy);
      }
    });
    room_ += values;
  }

  // Writes alpha and the listed entries of G back to the block.
  void store() const {
    for (Index i = 0; i < b_.q; ++i)
      for_variables(i, [&](const Variable& variable) {
        b_.alpha[i * b_.m + variable.r] = variable.alpha;
        b_.G[i * b_.m + variable.r] = G_[variable.at];
      });
  }

 private:
  struct Sample {
    std::int32_t first, count, own;
  };
  struct Variable {
    double alpha;
    std::int32_t at;  // where its gradient is, in G_
    std::int32_t r;   // class
  };
  struct Class {
    Index size = 0;      // samples that have the class
    Index first = 0;     // where their gradient starts
    bool whole = false;  // all samples have it, so that it uses the rows of K itself
    const T* block = nullptr;  // the kernel between its samples, if it was computed
    std::vector<std::int32_t> members;
  };

  struct Copy {
    T** copy;  // where its address goes
    const T* row;
    const Class* of;
    Index first;  // its place in what is left of the room
  };

  static constexpr Index kGap = 8;  // between classes in G_, so that a sample's classes do not share cache sets

  // Positions have 32 bits, which keeps the variables of a sample in one cache line. Only blocks of more memory than
  // 32 GB have more variables than that.
  static const Subproblem<T>& checked(const Subproblem<T>& b) {
    if (b.q + kGap > std::numeric_limits<std::int32_t>::max() / b.m)
      throw std::length_error("a block of " + std::to_string(b.q) + " samples and " + std::to_string(b.m) +
                              " classes has more than 2^31 variables: use a smaller working_set_size");
    return b;
  }

  template <class Visit>
  void for_variables(Index i, Visit visit) const {
    const Sample& s = samples_[i];
    for (Index p = s.first; p < s.first + s.count; ++p) visit(variables_[p]);
  }

  void list(double width) {
    for (Index i = 0; i < b_.q; ++i) {
      const Index first = i * b_.m;
      append(i, Machine::listed(b_.G + first, b_.alpha + first, b_.y[i], b_.C[i], b_.m, width));
      for_variables(i, [&](const Variable& variable) { ++classes_[variable.r].size; });
    }
  }

  // Whether the kernel blocks of the listed classes have fewer entries than K, and at most `room`.
  bool blocks_fit(Index room) const {
    const auto rows = static_cast<double>(rows_), q = static_cast<double>(b_.q);
    double entries = 0.0;
    for (const Class& c : classes_) entries += static_cast<double>(c.size) * static_cast<double>(c.size);
    entries *= rows / std::max(q, 1.0);
    return entries < rows * q && entries <= static_cast<double>(room);
  }

  void list_all() {
    variables_.clear();
    for (Index i = 0; i < b_.q; ++i) append(i, [](Index) { return true; });
    for (Class& c : classes_) c = {b_.q, 0, true, nullptr, {}};
  }

  template <class Listed>
  void append(Index i, Listed listed) {
    Sample& s = samples_[i];
    s = {static_cast<std::int32_t>(variables_.size()), 0, -1};
    for (Index r = 0; r < b_.m; ++r) {
      if (!listed(r)) continue;
      if (r == b_.y[i]) s.own = s.count;
      variables_.push_back({b_.alpha[i * b_.m + r], 0, static_cast<std::int32_t>(r)});
      ++s.count;
    }
    if (s.count >= Machine::kLeastClasses) return;
    variables_.resize(s.first);
    s.count = 0;
  }

  void list_members() {
    for (Class& c : classes_) c.members.reserve(c.size);
    for (Index i = 0; i < b_.q; ++i)
      for_variables(i, [&](const Variable& variable) {
        classes_[variable.r].members.push_back(static_cast<std::int32_t>(i));
      });
    if (b_.K) copies_.resize(rows_ * b_.m, nullptr);
  }

  // The kernel blocks of the classes, or K if all classes use it, in `room_`.
  void compute_kernel() {
    std::vector<KernelSquare<T>> squares;
    std::vector<std::int32_t> everyone(b_.q);
    std::iota(everyone.begin(), everyone.end(), 0);
    auto add = [&](const std::vector<std::int32_t>& members) {
      const auto count = std::ssize(members);
      if (count * count > room_end_ - room_) throw std::length_error("room must have place for the kernel block");
      squares.push_back({members.data(), count, std::exchange(room_, room_ + count * count)});
      return squares.back().out;
    };
    if (std::any_of(classes_.begin(), classes_.end(), [](const Class& c) { return c.whole; })) {
      b_.K = add(everyone);
      b_.K_stride = b_.q;
    } else {
      for (Class& c : classes_) c.block = add(c.members);
    }
    b_.kernel->fill(squares);
    using Value = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (const auto& square : squares)
      for (Index k = 0; k < square.count; ++k)
        square.out[k * (square.count + 1)] = to_stored<T>(static_cast<Value>(b_.diag[square.samples[k]]));
  }

  const T* whole_row(Index i) const { return b_.K + i * b_.K_stride; }

  static MULTIMARGIN_INLINE void fetch(const T* row, Index size) {
    for (Index j = 0; j < size; j += 64 / static_cast<Index>(sizeof(T))) MULTIMARGIN_PREFETCH(row + j);
  }

  // h += K[i, members of the variable's class] delta, for a variable of sample i. Returns the work.
  template <class S>
  MULTIMARGIN_INLINE Index add_variable(Index i, const Variable& variable, double delta, std::vector<S>& h) {
    const Class& c = classes_[variable.r];
    if (!c.block) return add_row(i, variable.r, delta, h);
    add_scaled(c.block + (variable.at - c.first) * c.size, c.size, delta, h.data() + c.first);
    return c.size;
  }

  // Places each variable's gradient in G_ and copies it there.
  void load() {
    Index total = 0;
    std::vector<Index> next;
    for (Class& c : classes_) {
      c.first = total;
      next.push_back(total);
      total += c.size + kGap;
    }
    G_.resize(total);
    for (Index i = 0; i < b_.q; ++i) {
      const Sample& s = samples_[i];
      for (Index p = s.first; p < s.first + s.count; ++p) {
        Variable& variable = variables_[p];
        variable.at = static_cast<std::int32_t>(next[variable.r]++);
        G_[variable.at] = static_cast<Real>(b_.G[i * b_.m + variable.r]);
      }
    }
  }

  template <class S>
  static MULTIMARGIN_CLONES void add_gathered(const T* __restrict row, const std::int32_t* columns, Index n,
                                              double delta, S* __restrict G) {
    const S by = static_cast<S>(delta * kStoredUnit<T>);
    for (Index j = 0; j < n; ++j) G[j] += by * stored_value<S>(row[columns[j]]);
  }

  Subproblem<T> b_;
  Index rows_;  // samples that may take a step
  std::vector<Sample> samples_;
  std::vector<Class> classes_;
  std::vector<Variable> variables_;  // sample after sample
  std::vector<Real> G_;              // class after class
  T *room_, *room_end_;              // for the next copy of a kernel row
  // Of the kernel row of each sample and class: its copy, null if it was never used, or room_end_ if it was used once.
  std::vector<T*> copies_;
};

}  // namespace multimargin::solvers
