"""The rooms of the native code: includes only point downwards, files and functions stay short."""

import re
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "src" / "multimargin" / "native"
BELOW = {
    "base": set(),
    "samples": {"base"},
    "machines": {"base"},
    "kernel": {"base", "samples"},
    "state": {"base"},
    "solvers": {"base", "samples", "machines", "kernel", "state"},
    "linear": {"base", "machines"},
    "files": {"base"},
    "bind": {"base", "samples", "machines", "kernel", "state", "solvers", "linear", "files"},
}
FILES = sorted(NATIVE.rglob("*.[hc]pp"))


def test_every_file_is_in_a_room():
    assert {path.parent.relative_to(NATIVE).as_posix() for path in FILES} == set(BELOW)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(NATIVE).as_posix())
def test_includes_point_downwards(path):
    room = path.parent.name
    for included in re.findall(r'#include "([^"]+)"', path.read_text()):
        assert (NATIVE / included).exists(), f"{included} must be a path from native/"
        assert Path(included).parent.name in BELOW[room] | {room}, f"{room} may not include {included}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(NATIVE).as_posix())
def test_a_file_has_the_namespace_of_its_room_and_at_most_400_lines(path):
    text, room = path.read_text(), path.parent.name
    if not path.name.endswith(".inc.hpp"):  # included inside of a namespace
        assert re.search(rf"^namespace multimargin::(inline )?{room}\b", text, flags=re.MULTILINE)
    assert len(text.splitlines()) <= 400
    assert max(map(len, text.splitlines())) <= 120


def test_all_parallel_regions_are_one_function():
    """`in_team` starts the threads in advance, carries exceptions, and tells ThreadSanitizer of barriers."""
    regions = {path.name: len(re.findall(r"#pragma omp .*\bparallel\b", path.read_text())) for path in FILES}
    assert {name: count for name, count in regions.items() if count} == {"openmp_team.hpp": 1}
