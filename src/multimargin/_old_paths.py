"""Where pickles of version 0.1.0 look for classes that have moved or gone since.

``pickle`` imports a class by the path of its module. Each old path below becomes another name of the module
that now has the class, so that such files load.
"""

from __future__ import annotations

import sys
from importlib import import_module

_MOVED = {
    "box_interior_point": "inner.box_interior_point",
    "decomposition": "methods.decomposition",
    "frank_wolfe": "inner.frank_wolfe",
    "interior_point": "inner.undecided_interior_point",
    "linear_stream": "linear.stream",
    "linear_svc": "estimators.linear_svc",
    "low_rank": "_old_paths",
    "smo": "inner.pair_descent",
    "variable_projection": "inner.variable_projection",
}


class LowRank:
    """What ``Decomposition.leap`` was in version 0.1.0; it counts as True."""

    def __repr__(self) -> str:
        return "True"


for _old, _new in _MOVED.items():
    sys.modules[f"multimargin.{_old}"] = import_module(f"multimargin.{_new}")
