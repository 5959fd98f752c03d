"""Where pickles of version 0.1.0 look for classes that have moved or gone since.

``pickle`` imports a class by the path of its module. Each old path below is another name of the module that
now has the class, so that such files load.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = "multimargin."
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


class _OldPaths(MetaPathFinder, Loader):
    """Finds the modules of old paths when something asks for them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_old = fullname.startswith(_PACKAGE) and fullname[len(_PACKAGE) :] in _MOVED
        return ModuleSpec(fullname, self) if is_old else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        sys.modules[name] = import_module(_PACKAGE + _MOVED[name[len(_PACKAGE) :]])


sys.meta_path.append(_OldPaths())
