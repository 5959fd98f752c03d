// What one process of a team tells the others about its steps: the weights that changed.
//
// All processes have the same weights, and each makes steps for its own samples. `changes` lists by how much the
// weights of this process changed since the last exchange, and takes the changes back. `add` makes those of all
// processes, in the same order everywhere, so that the weights are equal again to the last bit. Only features of
// samples that moved are looked at: an exchange costs as much as the steps since the last one, however many weights
// there are.
#pragma once

#include "linear/rows.hpp"
#include "linear/weights.hpp"

namespace multimargin::linear {

template <class W>
class WeightExchange {
 public:
  using Key = std::conditional_t<std::is_same_v<W, float>, std::int32_t, std::int64_t>;
  struct Change {
    Key place;  // in the array of weights
    W value;
  };

  WeightExchange(const LinearRows* rows, const LinearWeights<W>& weights)
      : rows_(rows), weights_(weights), last_(weights.features * weights.classes()), seen_(weights.features) {
    if (last_.size() > static_cast<std::size_t>(std::numeric_limits<Key>::max()))
      throw std::invalid_argument("more than 2^31 - 1 weights: use dtype='float64'");
    row_.reserve(rows->longest());
    adopt();
  }

  // Takes the weights as they are for those of all processes.
  void adopt() { std::copy(weights_.values, weights_.values + last_.size(), last_.begin()); }

  // The step of sample i will have to be told.
  void note(Index i) {
    rows_->load(i, row_);
    row_.with_terms([&](const auto& terms) {
      terms.each([&](W, Index feature) {
        if (seen_[feature]) return;
        seen_[feature] = true;
        touched_.push_back(feature);
      });
    });
  }

  // The changes over `stretch`; the weights return to those of the last exchange.
  std::vector<Change> changes(double stretch) {
    std::vector<Change> list;
    const W share = static_cast<W>(1.0 / stretch);
    for (const Index feature : touched_) {
      seen_[feature] = false;
      for (Index b = 0; b < weights_.blocks; ++b) {
        const Index first = (b * weights_.features + feature) * weights_.width;
        for (Index k = first; k < first + weights_.width; ++k) {
          if (weights_.values[k] == last_[k]) continue;
          list.push_back({static_cast<Key>(k), share * (weights_.values[k] - last_[k])});
          weights_.values[k] = last_[k];
        }
      }
    }
    touched_.clear();
    return list;
  }

  // Makes changes; returns by how much |W|^2 / 2 grew.
  double add(const Change* list, Index count) {
    double growth = 0.0;
    for (Index k = 0; k < count; ++k) {
      W& weight = last_[list[k].place];
      const double before = static_cast<double>(weight);
      weight += list[k].value;
      weights_.values[list[k].place] = weight;
      growth += 0.5 * (static_cast<double>(weight) - before) * (static_cast<double>(weight) + before);
    }
    return growth;
  }

  bool fits(const Change& change) const {
    return 0 <= change.place && static_cast<std::size_t>(change.place) < last_.size();
  }

 private:
  const LinearRows* rows_;
  LinearWeights<W> weights_;
  std::vector<W> last_;  // the weights of all processes
  std::vector<char> seen_;
  std::vector<Index> touched_;  // features
  LinearRow<W> row_;
};

}  // namespace multimargin::linear
