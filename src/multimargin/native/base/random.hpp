// A small seeded generator: the same seed gives the same run on every platform.
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

// splitmix64 (Steele, Lea & Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t x = (state_ += 0x9E3779B97F4A7C15ull);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }

  // A number in 0..n-1, for 0 < n < 2^32.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }

  // Fisher-Yates.
  template <class Item>
  void shuffle(Item* first, std::int64_t n) {
    for (std::int64_t k = n - 1; k > 0; --k) std::swap(first[k], first[below(k + 1)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace multimargin::base
