// Python bindings of proximal models and their Newton steps: shapes, dtypes and the GIL; no mathematics.
#include "machines/machines.hpp"
#include "solvers/model_search.hpp"
#include "solvers/newton_columns.hpp"
#include "solvers/newton_pairs.hpp"
#include "solvers/pivots.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bind/arrays.hpp"
#include "bind/capsules.hpp"

namespace multimargin::bind {
namespace {

using namespace machines;
using namespace solvers;

using Sum = std::optional<nb::callable>;

void set_lapack(nb::handle dsyrk, nb::handle dpotrf, nb::handle dpotri, nb::handle dpotrs) {
  lapack::syrk_pointer = function_of<lapack::Syrk>(dsyrk, "dsyrk", "c, c, i, i, v, v, i, v, v, i");
  lapack::potrf_pointer = function_of<lapack::Potrf>(dpotrf, "dpotrf", "c, i, v, i, i");
  lapack::potri_pointer = function_of<lapack::Potrf>(dpotri, "dpotri", "c, i, v, i, i");
  lapack::potrs_pointer = function_of<lapack::Potrs>(dpotrs, "dpotrs", "c, i, i, v, i, v, i, i");
}

void write_face_sizes(const Array<const bool, 2>& face, bool coupled, const Vector& sizes) {
  require(length(sizes) == length(face, 1) + 2, "sizes must have one value per class, and two more");
  face_sizes(face.data(), length(face), length(face, 1), coupled, sizes.data());
}

bool solve_pairs(NewtonPairs& pairs, const ConstMatrix& F, const Array<const bool, 2>& face,
                 const ConstVector& sigma, const ConstMatrix& g, bool coupled, const Matrix& direction) {
  nb::gil_scoped_release released;
  const Index n = length(F), p = length(F, 1), m = length(g, 1);
  require(length(face) == n && length(face, 1) == m, "face must have one row per row of F, and the columns of g");
  require(length(sigma) == n && length(g) == p, "sigma must have one value per row of F, and g one row per column");
  require(length(direction) == p && length(direction, 1) == m, "direction must have the shape of g");
  return pairs.solve({n, p, m, F.data(), face.data(), sigma.data(), g.data(), coupled}, direction.data());
}

void newton_columns(const ConstMatrix& F, const Array<const bool, 2>& face, const ConstVector& sigma, const Matrix& A) {
  nb::gil_scoped_release released;
  const Index n = length(F), p = length(F, 1), m = length(face, 1);
  require(length(face) == n && length(sigma) == n, "face and sigma must have one row per row of F");
  require(length(A) == m * p && length(A, 1) == m * p, "A must have one row and column per class and column of F");
  NewtonColumns({n, p, m, F.data(), face.data(), sigma.data(), nullptr, true}).add_to(A.data());
}

ModelCentre centre_of(const ConstMatrix& alpha, const ConstMatrix& G, const ConstVector& sigma, const Labels& y,
                      const ConstVector& C) {
  check_shapes(G, alpha, y, C);
  require(length(G, 1) >= 2, "G needs at least two classes (columns)");
  require(length(sigma) == length(G), "sigma must have one value per row of G");
  require(all_within(y.data(), length(y), 0, length(G, 1)), "y must be in 0..m-1");
  return {length(G), length(G, 1), alpha.data(), G.data(), sigma.data(), y.data(), C.data()};
}

double model_search(const std::string& machine, const ConstMatrix& alpha, const ConstMatrix& G,
                    const ConstVector& sigma, const Labels& y, const ConstVector& C, const ConstMatrix& FU,
                    const ConstMatrix& dFU, double first, double along, double squared, const Sum& sum,
                    const Matrix& out) {
  nb::gil_scoped_release released;
  const ModelCentre centre = centre_of(alpha, G, sigma, y, C);
  for (const ConstMatrix& array : {FU, dFU, ConstMatrix(out)})
    require(length(array) == centre.n && length(array, 1) == centre.m, "FU, dFU and out must have the shape of G");
  return with_machine(machine, [&]<class Machine>(std::type_identity<Machine>) {
    ModelLine<Machine> line(centre, FU.data(), dFU.data());
    return find_root({first, along, squared}, [&](double t) {
      const double product = line.point(t, out.data());
      if (!sum) return -product;
      nb::gil_scoped_acquire acquired;
      return -nb::cast<double>((*sum)(product));
    });
  });
}

void model_back(const ConstMatrix& F, const ConstMatrix& alpha, const ConstMatrix& before, const Matrix& out) {
  nb::gil_scoped_release released;
  const Index n = length(F), p = length(F, 1), m = length(alpha, 1);
  require(length(alpha) == n && length(before) == n && length(before, 1) == m,
          "alpha and before must have one row per row of F");
  require(length(out) == p && length(out, 1) == m, "out must have one row per column of F");
  multiply_back(F.data(), n, p, m, alpha.data(), before.data(), out.data());
}

Index write_pivots(const Matrix& A, double least, const WritableIds& pivots, const Matrix& factor) {
  const Index c = length(A);
  require(length(A, 1) == c && length(factor) == c && length(factor, 1) == c, "A and factor must be square, and alike");
  require(length(pivots) == c, "pivots must have one value per row of A");
  require(least > 0.0, "least must be positive");
  return find_pivots(A.data(), c, least, pivots.data(), factor.data());
}

void write_face(const std::string& machine, const ConstMatrix& alpha, const Labels& y, const ConstVector& C,
                const Array<bool, 2>& face) {
  nb::gil_scoped_release released;
  const Index n = length(alpha), m = length(alpha, 1);
  require(length(y) == n && length(C) == n, "y and C must have one value per row of alpha");
  require(length(face) == n && length(face, 1) == m, "face must have the shape of alpha");
  require(all_within(y.data(), n, 0, m), "y must be in 0..m-1");
  const auto write = [&]<class Machine>(std::type_identity<Machine>) {
    if constexpr (!Machine::kSharesMean) {
      for (Index i = 0; i < n; ++i)
        Machine::face(alpha.data() + i * m, y.data()[i], C.data()[i], m, face.data() + i * m);
    } else {
      throw std::invalid_argument("the derivative of this machine's projection has another form");
    }
  };
  with_one_of<CrammerSinger, WestonWatkins, LeeLinWahba, Msvm2, OneVsRest, SquaredOneVsRest>(machine, write);
}

}  // namespace

void bind_newton(nb::module_& m) {
  m.def("set_lapack", &set_lapack, "dsyrk"_a, "dpotrf"_a, "dpotri"_a, "dpotrs"_a,
        "Use these functions (capsules of scipy.linalg.cython_blas and cython_lapack).");
  m.def("face_sizes", &write_face_sizes, "face"_a.noconvert(), "coupled"_a, "sizes"_a.noconvert(),
        "Writes the free entries of each class, the sum of the squares of those of each row, and the rows with some.");
  nb::class_<NewtonPairs>(m, "NewtonPairs", "Newton's directions of proximal steps, by pairs; it keeps their memory.")
      .def(nb::init<>())
      .def("solve", &solve_pairs, "F"_a.noconvert(), "face"_a.noconvert(), "sigma"_a.noconvert(), "g"_a.noconvert(),
           "coupled"_a, "direction"_a.noconvert(), "Writes a direction; False if a matrix is not positive definite.");
  m.def("newton_columns", &newton_columns, "F"_a.noconvert(), "face"_a.noconvert(), "sigma"_a.noconvert(),
        "A"_a.noconvert(),
        "Adds the matrix of Newton's system by columns, whose rows sum to zero, to A: the half above the diagonal, as "
        "the rows of A are LAPACK's columns.");
  m.def("find_pivots", &write_pivots, "A"_a.noconvert(), "least"_a, "pivots"_a.noconvert(), "factor"_a.noconvert(),
        "Pivots of a small matrix whose rests are at least so large, and the columns of its factor; returns how many. "
        "A is overwritten.");
  m.def("face", &write_face, "machine"_a, "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(),
        "face"_a.noconvert(), "Writes which entries move if a point whose projection is alpha moves a little.");
  m.def("model_search", &model_search, "machine"_a, "alpha"_a.noconvert(), "G"_a.noconvert(), "sigma"_a.noconvert(),
        "y"_a.noconvert(), "C"_a.noconvert(), "FU"_a.noconvert(), "dFU"_a.noconvert(), "first"_a, "along"_a,
        "squared"_a, "sum"_a.none(), "out"_a.noconvert(),
        "Writes the point at a root of the slope along a line of a proximal model to out, and returns how far it is. "
        "sum(value) -> float adds up what the processes of a team have.");
  m.def("model_back", &model_back, "F"_a.noconvert(), "alpha"_a.noconvert(), "before"_a.noconvert(),
        "out"_a.noconvert(), "out = F' (alpha - before).");
}

}  // namespace multimargin::bind
