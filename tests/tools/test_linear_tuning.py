"""The benchmark of LinearSVC's tuned numbers."""

import sys
from dataclasses import fields
from pathlib import Path

from multimargin import LinearSVC
from multimargin.linear.tuning import Tuning

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.checks import linear_tuning
from benchmarks.workers.storage import Split


def test_every_case_is_a_tuned_number_with_other_values(text, monkeypatch):
    X, y = text
    monkeypatch.setattr(linear_tuning, "training_part", lambda name: Split(X, y, X[:2], y[:2]))
    assert linear_tuning.CASES.keys() <= {field.name for field in fields(Tuning)}
    for name, case in linear_tuning.CASES.items():
        assert getattr(Tuning(), name) not in case.values
        visits, proofs, seconds = linear_tuning.fitted(case, Tuning(**{name: case.values[0]}), 1)
        assert visits >= 1 and proofs >= 1 and seconds > 0
    assert LinearSVC._tuning == Tuning()
