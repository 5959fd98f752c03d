// The device's formulas of one sample, compiled for the host: called by test_cuda_formulas.py.
#include <vector>

#include "machines.cuh"

using namespace multimargin;

template <int machine>
static void of_sample(const double* alpha, const double* G, int m, int columns, int y, double C, double K, double ridge,
                      double* measures, double* change, double* looked) {
  const AlphaSample<machine> given{alpha, G, 1, m, y, C};
  const Facts f = facts<machine>(given, ridge);
  const double all[] = {f.psi, f.gain, f.loss, f.score, f.linear, f.square};
  for (int k = 0; k < 6; ++k) measures[k] = all[k];
  if constexpr (!Traits<machine>::binary) {
    std::vector<double> v(columns), moved(columns);
    for (int r = 0; r < columns; ++r) v[r] = given.value(r);
    const Sample<machine, double> sample{v.data(), G, 1, m, y, C};
    const Look<double> seen = look(sample, K, 1e-15, OneLane{});
    looked[0] = seen.psi, looked[1] = seen.gain;
    const Solver<machine, double, OneLane> solver(sample, K, OneLane{});
    double sum = 0.0;
    for (int r = 0; r < m; ++r) sum += moved[r] = solver.solution(r) - v[r];
    if (Traits<machine>::simplex) sum = 0.0;
    for (int r = 0; r < m; ++r) change[r] = coefficient_change<machine>(moved[r], sum, r, y, m);
  }
}

extern "C" void formulas(int machine, const double* alpha, const double* G, int m, int columns, int y, double C, double K,
                         double ridge, double* measures, double* change, double* looked) {
  auto call = [&](auto of) { of(alpha, G, m, columns, y, C, K, ridge, measures, change, looked); };
  switch (machine) {
    case CRAMMER_SINGER: return call(of_sample<CRAMMER_SINGER>);
    case WESTON_WATKINS: return call(of_sample<WESTON_WATKINS>);
    case LEE_LIN_WAHBA: return call(of_sample<LEE_LIN_WAHBA>);
    case MSVM2: return call(of_sample<MSVM2>);
    case ONE_VS_REST: return call(of_sample<ONE_VS_REST>);
    case C_SVC: return call(of_sample<C_SVC>);
  }
}
