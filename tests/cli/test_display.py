"""The line that a running fit shows: what a narrow terminal has room for."""

import io
from types import SimpleNamespace

import pytest

from multimargin.cli.display import Display
from multimargin.solution import TraceRow


class FakeTerminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def display(monkeypatch):
    clock = SimpleNamespace(perf_counter=lambda: 0.0)
    monkeypatch.setattr("multimargin.cli.display.time", clock)
    shown = Display(1e-3, out=FakeTerminal())
    for iteration, violation in enumerate((2.0, 0.5, 0.02)):
        seconds = 30.0 * (iteration + 1)
        shown(TraceRow(iteration, seconds, violation, -3.5, 1.4e3, 512, 7, 90_000, 480_000, 0, 11146))
    clock.perf_counter = lambda: 90.0
    return shown


def test_a_wide_terminal_shows_everything(display):
    line = display.facts(200)
    assert line == display.facts()
    found = line.split("  ")
    for part in ("violation 2.0e-02 >> 1e-03", "gap 1.4e+03", "11146 SVs", "cache 84%", "1000 rows/s"):
        assert part in found
    assert "[" in line and found[-1].endswith(" left")


@pytest.mark.parametrize("width", range(20, 200, 7))
def test_parts_are_whole_or_left_out(display, width):
    line = display.facts(width)
    assert len(line) <= width
    whole = [part.strip() for part in display.facts().split("  ")]
    assert all(part.strip() in whole for part in line.split("  "))


def test_80_columns_have_room_for_the_time_that_is_left(display):
    line = display.facts(79)
    assert all(part in line for part in ("30%", "violation", "SVs", " left"))
