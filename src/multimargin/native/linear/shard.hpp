// The samples of one part: which of them a pass visits and updates.
//
// A pass visits all samples, or the active ones. A sample is active if a class other than the one with all its weight
// comes within `margin` of the top score. Samples found below the threshold wait 1, 3, 7, ... passes, unless the
// threshold falls below their violation. Updated samples wait too: if the violation took `age` passes to grow to psi,
// it is expected to take age * threshold / psi passes to grow to the threshold again.
#pragma once

#include "base/random.hpp"
#include "linear/class_worker.hpp"
#include "linear/sparse_dual.hpp"
#include "linear/visitor.hpp"

namespace multimargin::linear {

struct PassResult {
  Index visits = 0, updates = 0, active = 0;
  double violation = 0.0;  // largest seen, before the sample's update
  double total = 0.0;      // sum of all samples' violations, each as of the last look at the sample
  double change = 0.0;     // of the dual; with several threads, the sum of what each of them computed
  double gap = 0.0;        // sum of all samples' shares, each as of the last look at the sample

  void operator+=(const PassResult& part) {
    visits += part.visits;
    updates += part.updates;
    active += part.active;
    violation = worse_of(violation, part.violation);
    total += part.total;
    change += part.change;
    gap += part.gap;
  }
};

struct PassRule {
  double threshold;  // samples with psi above it are updated
  double relax;      // of the step: 1 is exact
  double margin;     // of a pass over all samples: decides which are active afterwards
  bool shuffle;
  bool notes;      // steps are listed for other processes
  double stretch;  // of |x_i|^2 and of what a step adds to the weights (see LinearVisitor::step)
};

// Weight steps that are still to be made.
class StepLog {
 public:
  void clear() {
    samples_.clear();
    ends_.clear();
    classes_.clear();
    delta_.clear();
  }

  void push(Index i, const LinearStep& step) {
    samples_.push_back(i);
    classes_.insert(classes_.end(), step.classes, step.classes + step.count);
    delta_.insert(delta_.end(), step.delta, step.delta + step.count);
    ends_.push_back(classes_.size());
  }

  // use(sample, step) for each of them.
  template <class Use>
  void each(Use use) const {
    std::size_t first = 0;
    for (std::size_t k = 0; k < samples_.size(); ++k) {
      const Index count = static_cast<Index>(ends_[k] - first);
      use(samples_[k], LinearStep{classes_.data() + first, delta_.data() + first, count});
      first = ends_[k];
    }
  }

  template <class W>
  void make(ClassWorker<W>& block) const {
    each([&](Index i, const LinearStep& step) { block.add(i, step); });
  }

 private:
  std::vector<Index> samples_;
  std::vector<std::size_t> ends_;
  std::vector<std::int32_t> classes_;
  std::vector<double> delta_;
};

template <class W, class Machine>
class LinearShard {
 public:
  LinearShard(const LabelledRows& task, SparseDual* dual, const UpdateRule& update, std::uint64_t seed, int part)
      : visitor_(task, dual, update, seed + 1), random_(seed), part_(part), parts_(dual->parts()),
        waiting_((dual->size() - part + parts_ - 1) / parts_), last_(waiting_.size()) {}

  const PassResult& result() const { return result_; }

  // No |alpha_ir| is above `most` (see ListedClasses::expect).
  void expect(double most) { visitor_.expect(most); }

  void begin(bool all, const PassRule& rule) {
    const double total = all ? 0.0 : result_.total, gap = all ? 0.0 : result_.gap;
    result_ = {};
    result_.total = total;
    result_.gap = gap;
    all_ = all;
    rule_ = rule;
    if (all)
      list_all();
    else
      list_active();
    if (rule.shuffle) random_.shuffle(visits_.data(), static_cast<Index>(visits_.size()));
    at_ = end_ = 0;
  }

  // The next visits are the first of so many equal pieces of what is left.
  void take_piece(Index pieces) {
    const std::size_t count = static_cast<std::size_t>(pieces);
    end_ = at_ + (visits_.size() - at_ + count - 1) / count;
  }

  // How many samples of the piece are left to visit, at most `most`; and the sample that comes after `ahead` others.
  Index left(Index most) const { return std::min(most, static_cast<Index>(end_ - at_)); }
  Index upcoming(Index ahead) const { return visits_[at_ + ahead] * parts_ + part_; }

  // Visits at most `visits` samples; returns whether any are left.
  bool go_on(Index visits, ClassWorkers<W>& blocks, W* scores) {
    for (Index k = left(visits); k > 0; --k) {
      const Index i = upcoming(0);
      const double psi = visitor_.look(i, scores, blocks.score(i, scores));
      if (left(2) == 2) blocks.announce(upcoming(1)), visitor_.announce(upcoming(1));
      if (left(4) == 4) blocks.foresee(upcoming(3)), visitor_.foresee(upcoming(3));
      if (visit(i, psi)) blocks.add(i, visitor_.last_step());
    }
    return left(1) > 0;
  }

  // The same for samples whose scores are known; their weight steps are logged for later.
  void settle(Index visits, const W* scores, Index stride, const W* tops) {
    forget_steps();
    for (Index k = 0; k < visits; ++k) {
      const Index i = upcoming(0);
      if (visit(i, visitor_.look(i, scores + k * stride, tops[k]))) log_.push(i, visitor_.last_step());
    }
  }
  // Steps that were made and that other processes do not know yet.
  StepLog& made() { return made_; }

  const StepLog& log() const { return log_; }
  void forget_steps() { log_.clear(); }

 private:
  struct Waiting {
    std::uint8_t level = 0;  // how often the sample was found below the threshold since it was updated
    std::uint8_t left = 0;   // passes to wait
    std::uint8_t age = 1;    // passes since it was updated
    bool active = false;     // as of the last pass over all samples
  };
  struct Last {  // as of the last look at the sample
    float psi = 0.0f, gain = 0.0f;
  };
  static constexpr int kLevels = 5, kMostAge = 255;
  static constexpr double kMostDue = 7.0;  // passes an updated sample waits

  void list_all() {
    visits_.resize(last_.size());
    std::iota(visits_.begin(), visits_.end(), Index{0});
    for (Waiting& waiting : waiting_) waiting.level = waiting.left = 0;
    std::fill(last_.begin(), last_.end(), Last{});
    listed_ = false;
  }

  // Lists the active samples whose turn it is; the others wait one pass less from now on. The loop is branch-free,
  // because the branch would be unpredictable.
  void list_active() {
    if (!listed_) {
      active_.clear();
      for (std::size_t k = 0; k < waiting_.size(); ++k)
        if (waiting_[k].active) active_.push_back(static_cast<Index>(k));
      listed_ = true;
    }
    result_.active = static_cast<Index>(active_.size());
    visits_.resize(active_.size());
    std::size_t count = 0;
    for (const Index k : active_) {
      Waiting& waiting = waiting_[k];
      const bool small = static_cast<double>(last_[k].psi) <= rule_.threshold;
      const bool sits = (waiting.left != 0) & ((waiting.level == 0) | small);
      waiting.left = static_cast<std::uint8_t>(waiting.left - sits);
      waiting.age = older(waiting.age, sits);
      visits_[count] = k;
      count += !sits;
    }
    visits_.resize(count);
  }

  static std::uint8_t older(std::uint8_t age, bool by_one) {
    return static_cast<std::uint8_t>(age + (by_one & (age < kMostAge)));
  }

  // Visits the next sample, whose violation is psi; returns whether there was a step.
  MULTIMARGIN_INLINE bool visit(Index i, double psi) {
    const std::size_t k = visits_[at_++];
    ++result_.visits;
    result_.violation = worse_of(result_.violation, psi);
    result_.total += psi - static_cast<double>(last_[k].psi);
    result_.gap += visitor_.gain() - static_cast<double>(last_[k].gain);
    last_[k] = {static_cast<float>(psi), static_cast<float>(visitor_.gain())};
    Waiting& waiting = waiting_[k];
    if (all_) result_.active += waiting.active = visitor_.undecided(i, rule_.margin);
    if (!(psi > rule_.threshold)) {
      waiting.level = static_cast<std::uint8_t>(std::min<int>(waiting.level + 1, kLevels));
      waiting.left = static_cast<std::uint8_t>((1 << waiting.level) - 1);
      waiting.age = older(waiting.age, true);
      return false;
    }
    const double due = static_cast<double>(waiting.age) * rule_.threshold / psi;
    waiting = {0, static_cast<std::uint8_t>(std::min(due, kMostDue)), 1, waiting.active};
    if (!visitor_.step(i, rule_.relax, rule_.stretch)) return false;
    ++result_.updates;
    if (rule_.notes) made_.push(i, visitor_.last_step());
    result_.change += visitor_.last_change();
    return true;
  }

  LinearVisitor<W, Machine> visitor_;
  Random random_;
  Index part_, parts_;
  std::vector<Index> active_, visits_;  // numbers k of samples k * parts + part; of this pass, in its order
  bool listed_ = false;                 // whether active_ is up to date
  std::vector<Waiting> waiting_;
  std::vector<Last> last_;
  std::size_t at_ = 0, end_ = 0;  // of visits_: the next one, and the end of the piece
  bool all_ = true;
  PassRule rule_{};
  PassResult result_;
  StepLog log_;
  StepLog made_;
};

}  // namespace multimargin::linear
