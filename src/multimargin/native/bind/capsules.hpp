// Functions of SciPy's BLAS and LAPACK, which it hands out as capsules. A capsule's name is the C signature.
#pragma once

#include <nanobind/nanobind.h>

#include "base/platform.hpp"

namespace multimargin::bind {

namespace nb = nanobind;

// Whether a signature has the arguments of a Fortran function with 32-bit integers, written as "c, i, v": pointers to a
// character, to an integer, and to a number, which is of one type in all places, whatever its name.
inline bool has_arguments(std::string_view signature, std::string_view expected) {
  const std::string_view head = "void (", tail = ")", comma = ", ";
  if (!signature.starts_with(head) || !signature.ends_with(tail)) return false;
  std::string_view rest = signature.substr(head.size(), signature.size() - head.size() - tail.size()), value;
  while (!expected.empty() && !rest.empty()) {
    const std::size_t end = std::min(rest.find(comma), rest.size());
    const std::string_view type = rest.substr(0, end);
    if (expected.front() == 'v' && value.empty()) value = type;
    if (type != (expected.front() == 'c' ? "char *" : expected.front() == 'i' ? "int *" : value)) return false;
    rest.remove_prefix(std::min(end + comma.size(), rest.size()));
    expected.remove_prefix(std::min(1 + comma.size(), expected.size()));
  }
  return expected.empty() && rest.empty() && (value.empty() || value.ends_with(" *"));
}

// The function in a capsule of scipy.linalg.cython_blas or cython_lapack; an ImportError if it has other arguments.
template <class Function>
Function function_of(nb::handle capsule, const std::string& name, std::string_view arguments) {
  if (!PyCapsule_CheckExact(capsule.ptr())) throw nb::type_error((name + ": a PyCapsule expected").c_str());
  const char* signature = PyCapsule_GetName(capsule.ptr());
  if (!signature || !has_arguments(signature, arguments))
    throw nb::import_error((name + " of SciPy has the signature '" + (signature ? signature : "") +
                            "'. multimargin needs a SciPy whose BLAS has 32-bit integers (int *).").c_str());
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), signature);
  if (!pointer) throw nb::python_error();
  return reinterpret_cast<Function>(pointer);
}

}  // namespace multimargin::bind
