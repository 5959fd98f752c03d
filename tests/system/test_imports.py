"""The rooms of the source: imports only point downwards, files and functions stay small.

``tests/native/test_rooms.py`` has the rule for the includes of the native code.
"""

import ast
import re
import textwrap
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "multimargin"
NATIVE = SRC / "native"
pytestmark = pytest.mark.skipif(not NATIVE.is_dir(), reason="the tests run without the source tree")

# Lowest first. A file may import its own room and the rooms on lines above its own: never a neighbour.
ROOMS = [
    ("system",),
    ("kernels", "solution"),
    ("problems",),
    ("run",),
    ("inner",),
    ("engines",),
    ("methods", "linear"),
    ("selection", "report"),
    ("files",),
    ("estimators",),
    ("package",),  # __init__.py and the modules that only give public or old names
    ("cli",),
]
MOST_LINES, MOST_FUNCTION_LINES = 400, 60

PYTHON = sorted(SRC.rglob("*.py")) if SRC.is_dir() else []
CPP = sorted(path for path in NATIVE.rglob("*") if path.suffix in (".hpp", ".cpp")) if SRC.is_dir() else []


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=[str(path.relative_to(SRC)) for path in paths])


def level(room):
    return next(k for k, same in enumerate(ROOMS) if room in same)


def room_of(parts):
    """The room of a module, given its path below the package."""
    named = {room for same in ROOMS for room in same}
    if parts and parts[0] == "__main__":
        return "cli"  # ``python -m multimargin``
    return parts[0] if parts and parts[0] in named else "package"


def imported(tree, package):
    """Paths below the package of everything that a module imports from it, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from (name[1:] for name in names if name[0] == "multimargin")
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            path = [*start, *(node.module.split(".") if node.module else [])]
            if path[0] == "multimargin":
                yield from ([path[1:]] if path[1:] else ([alias.name] for alias in node.names))


def allowed(source, target):
    return source == target or level(target) < level(source)


def imports_of(path):
    """(room of the file, what it imports from the package)."""
    parts = path.relative_to(SRC).with_suffix("").parts
    found = imported(ast.parse(path.read_text(encoding="utf-8")), ["multimargin", *parts[:-1]])
    return room_of(parts), [target for target in found if target[0] != "_core"]


@by_name(PYTHON)
def test_imports_point_downwards(path):
    source, targets = imports_of(path)
    upwards = [".".join(target) for target in targets if not allowed(source, room_of(target))]
    assert not upwards, f"{source} may not import {upwards}"


def test_the_linear_machine_does_without_kernels():
    found = {
        room_of(target) for path in sorted((SRC / "linear").glob("*.py")) for target in imports_of(path)[1]
    }
    assert found <= {"system", "solution", "problems", "run", "linear"}


def test_the_report_reads_facts_only():
    found = {
        room_of(target) for path in sorted((SRC / "report").glob("*.py")) for target in imports_of(path)[1]
    }
    assert found <= {"system", "solution", "report"}


def test_imports_are_found_wherever_they_stand():
    text = """
    import multimargin.engines.base
    from .. import _core, kernels
    from .table import METHODS
    if TYPE_CHECKING:
        from ..inner.block import Block
    def f():
        from multimargin.problems import box
    """
    found = imported(ast.parse(textwrap.dedent(text)), ["multimargin", "methods"])
    rooms = sorted(".".join(path) for path in found)
    assert rooms == ["_core", "engines.base", "inner.block", "kernels", "methods.table", "problems"]


def test_every_folder_is_a_room():
    folders = {path.name for path in SRC.iterdir() if path.is_dir()} - {"__pycache__", "native"}
    assert folders <= {room for same in ROOMS for room in same}


def without_comments(text):
    """The same lines without comments and strings, whose braces would be counted."""
    return re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"', "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


@by_name([*PYTHON, *CPP])
def test_files_are_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def function_lines(node):
    """Lines from ``def`` to the end, without the docstring's."""
    first = node.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    doc = first.end_lineno - first.lineno + 1 if is_doc else 0
    return node.end_lineno - node.lineno + 1 - doc


@by_name(PYTHON)
def test_functions_are_small(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    lines = {node.name: function_lines(node) for node in functions}
    assert not {name: count for name, count in lines.items() if count > MOST_FUNCTION_LINES}


def cpp_functions(text):
    """(head, lines from the head's first line to the closing brace) of every outermost function body."""
    text = without_comments(text)
    opened, begin, inside = [], 0, None
    for match in re.finditer(r"[{};]|^#.*$", text, flags=re.MULTILINE):
        sign = match.group()
        if sign == "{":
            head = text[begin : match.start()].strip()
            scope = re.search(r"\b(namespace|class|struct|union|enum)\b[^()]*$", head)
            if inside is None and "(" in head and not scope and "=" not in head.split("(")[0]:
                inside = (len(opened), head, match.start() - len(text[begin : match.start()].lstrip()))
            opened.append(sign)
        elif sign == "}":
            opened.pop()
            if inside and inside[0] == len(opened):
                yield inside[1], text.count("\n", inside[2], match.end()) + 1
                inside = None
        begin = match.end()


@by_name(CPP)
def test_native_functions_are_small(path):
    lines = cpp_functions(path.read_text(encoding="utf-8"))
    assert not {head: count for head, count in lines if count > MOST_FUNCTION_LINES}
