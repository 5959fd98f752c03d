// What ThreadSanitizer sees of the module's parallel regions: no report of two sound ones, between which OpenMP's
// threads end, and one report of each race. `teams` is sound, `teams before` and `teams after` have a race there.
#include "base/openmp_team.hpp"

#include <cstdio>
#include <string_view>

using namespace multimargin;

namespace {

// Both threads write to the stack of the calling thread: to different places, or to the same one.
__attribute__((noinline)) int sum_of_team(bool race) {
  int values[2] = {0, 0};
  in_team(2, [&](int t, int) { values[race ? 0 : t] += t + 1; });
  values[0] += values[1];
  return values[0];
}

}  // namespace

int main(int count, char** words) {
  const std::string_view race = count > 1 ? words[1] : "nowhere";
  int sum = sum_of_team(race == "before");
  if (!end_threads()) {
    std::puts("OpenMP's threads did not end");
    return 1;
  }
  sum += sum_of_team(race == "after");
  sum += sum_of_team(false);
  std::printf("%d\n", sum);
}
