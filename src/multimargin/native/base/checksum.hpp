// A checksum of bytes at the speed of memory: it tells whether two processes have the same data.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace multimargin::inline base {

__extension__ using Wide = unsigned __int128;

// Words of eight bytes go to kLanes sums in turn, so that their multiplications overlap. A step multiplies sum ^ word
// by an odd constant to 128 bits, and combines their halves: so the highest bits of a word change all bits of the sum.
// Different data have the same checksum with a probability of about 2^-64. It is no protection against somebody who
// looks for such data.
inline std::uint64_t checksum(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLanes = 8, kWord = sizeof(std::uint64_t);
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  const auto step = [](std::uint64_t sum, std::uint64_t word) {
    const Wide product = static_cast<Wide>(sum ^ word) * kOdd;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::array<std::uint64_t, kLanes> sums;
  for (std::size_t k = 0; k < kLanes; ++k) sums[k] = kOdd * (k + 1);
  std::size_t at = 0;
  for (; at + kLanes * kWord <= size; at += kLanes * kWord) {
    std::array<std::uint64_t, kLanes> words;
    std::memcpy(words.data(), data + at, sizeof words);
    for (std::size_t k = 0; k < kLanes; ++k) sums[k] = step(sums[k], words[k]);
  }
  std::uint64_t whole = size;
  for (; at < size; at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, std::min(kWord, size - at));
    whole = step(whole, word);
  }
  for (const std::uint64_t sum : sums) whole = step(whole, sum);
  return whole;
}

}  // namespace multimargin::base
