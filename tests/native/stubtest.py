"""Run mypy.stubtest on the native module's stub.

    python tests/native/stubtest.py

mypy.stubtest asks ``inspect`` for the signatures of functions, which does not know nanobind's functions.
Here it gets them from ``__nb_signature__``: names, order and defaults of the parameters. Functions with
overloads, which it would merge into one, are compared here, overload by overload. mypy does the rest.
"""

import ast
import inspect
import re
import sys
from pathlib import Path

from mypy import stubtest

from multimargin import _core

NANOBIND = (type(_core.measure), type(vars(_core.Samples)["take"]))
_ASKED, _IS_FUNCTION = stubtest.safe_inspect_signature, stubtest.is_probably_a_function


def overloads(runtime):
    """What nanobind knows of a function: a signature for each overload."""
    found = []
    for text, _doc, defaults in runtime.__nb_signature__:
        source = re.sub(r"ndarray\[[^]]*\]", "array", text).replace("def (", "def get(", 1)
        source = re.sub(r"\\(\d+)", r"\1", source)  # a default is the number of its value
        tree = ast.parse(f"{source}: ...").body[0].args
        found.append(signature_of(tree, defaults))
    return found


def signature_of(tree, defaults):
    """Parameters in the form of ``inspect``."""
    kinds = inspect.Parameter

    def made(arg, kind, number):
        given = kinds.empty if number is None else defaults[number.value]
        return kinds(arg.arg, kind, default=given)

    places = [None] * (len(tree.args) - len(tree.defaults)) + tree.defaults
    found = [
        made(arg, kinds.POSITIONAL_ONLY if arg.arg == "self" else kinds.POSITIONAL_OR_KEYWORD, number)
        for arg, number in zip(tree.args, places, strict=True)
    ]
    named = zip(tree.kwonlyargs, tree.kw_defaults, strict=True)
    return inspect.Signature(found + [made(arg, kinds.KEYWORD_ONLY, number) for arg, number in named])


def asked(runtime):
    """The signature of a function; None, which is not compared, if it has overloads of several forms."""
    if not isinstance(runtime, NANOBIND):
        return _ASKED(runtime)
    found = overloads(runtime)
    return found[0] if len({str(shape(one)) for one in found}) == 1 else None


def shape(signature):
    """Names of parameters, and which may be left out."""
    return [(p.name, p.default is not inspect.Parameter.empty) for p in signature.parameters.values()]


def stated():
    """The overloads of the stub by name, as ``shape`` has them."""
    tree = ast.parse((Path(_core.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
    found = {}
    for node in ast.walk(tree):
        for part in getattr(node, "body", []) if isinstance(node, ast.Module | ast.ClassDef) else []:
            marks = [mark.id for mark in getattr(part, "decorator_list", []) if isinstance(mark, ast.Name)]
            if "overload" not in marks:
                continue
            name = f"{node.name}.{part.name}" if isinstance(node, ast.ClassDef) else part.name
            left_out = len(part.args.args) - len(part.args.defaults)
            here = [(arg.arg, place >= left_out) for place, arg in enumerate(part.args.args)]
            found.setdefault(name, []).append(here)
    return found


def compare_overloads():
    """Differences of the overloads, as lines."""
    said = []
    for name, theirs in stated().items():
        runtime = _core
        for part in name.split("."):
            runtime = getattr(runtime, part)
        ours = [shape(signature) for signature in overloads(runtime)]
        said += [f"{name}: {one} is in the stub alone" for one in theirs if one not in ours]
        said += [f"{name}: {one} is in the module alone" for one in ours if one not in theirs]
    return said


def main():
    """Check; 0 if the stub is right."""
    stubtest.is_probably_a_function = lambda runtime: isinstance(runtime, NANOBIND) or _IS_FUNCTION(runtime)
    stubtest.safe_inspect_signature = asked
    stubtest._verify_metaclass = lambda *_, **__: iter(())  # nanobind's classes have a metaclass of its own
    different = compare_overloads()
    print(*different, sep="\n", end="\n" if different else "")
    allowed = Path(__file__).with_name("stubtest.allowed")
    options = stubtest.parse_options(["multimargin._core", "--allowlist", str(allowed), *sys.argv[1:]])
    return max(stubtest.test_stubs(options), int(bool(different)))


if __name__ == "__main__":
    sys.exit(main())
