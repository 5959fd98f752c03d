"""Every public name has a docstring in numpydoc's form, with an example. ``test_demo_docs.py`` runs them."""

import importlib
import inspect

import pytest
from numpydoc.validate import validate

import multimargin
from multimargin import datasets, kernels

# There is none; no parameters section, or one that is not that of the signature; no returns section.
ALWAYS = {"GL08", "PR01", "PR02", "RT01"}
NO_EXAMPLE = "EX01"
NAMES = sorted(
    [f"multimargin.{name}" for name in multimargin.__all__ if name not in ("datasets", "kernels")]
    + [f"multimargin.datasets.{name}" for name in datasets.__all__]
    + [f"multimargin.kernels.{name}" for name in kernels.__all__]
    + ["multimargin.engines.Mpi"]
)
ESTIMATORS = ("KernelSVC", "KernelSVCCV", "LinearSVC", "LinearSVCCV")
ENUMS = {"multimargin.Status"}  # whose parameters are those of Python's enum


def methods(name):
    """Public methods of an estimator that this package defines."""
    estimator = getattr(multimargin, name)
    for method in dir(estimator):
        home = getattr(getattr(estimator, method, None), "__module__", None) or ""
        if not method.startswith("_") and home.startswith("multimargin"):
            yield f"multimargin.{name}.{method}"


def faults(name):
    return dict(validate(name)["errors"])


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_documented_with_an_example(name):
    wanted = (ALWAYS | {NO_EXAMPLE}) - ({"PR01"} if name in ENUMS else set())
    assert not {code: said for code, said in faults(name).items() if code in wanted}


@pytest.mark.parametrize("name", [method for name in ESTIMATORS for method in methods(name)])
def test_methods_of_estimators_are_documented(name):
    assert not {code: said for code, said in faults(name).items() if code in ALWAYS}


def test_the_check_finds_what_is_missing():
    module = importlib.import_module("multimargin.cli.main")
    assert inspect.isfunction(module.say)
    assert {"PR01", NO_EXAMPLE} <= set(faults("multimargin.cli.main.say"))
