"""Every verb of a team of MPI ranks gives what a team of threads gives, and what NumPy gives for all samples.

One start of four ranks serves all tests here: its teams of one, two and three ranks are parts of it.
"""

import subprocess
import sys

import numpy as np
import pytest
from launch import on_ranks
from thread_team import run_ranks
from verbs import KS, SIZES, Case, all_verbs, four_ranks


@pytest.fixture(scope="module")
def ranks():
    return on_ranks(4, four_ranks)


def equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape
        return same and (a.tolist() == b.tolist() if a.dtype.hasobject else a.tobytes() == b.tobytes())
    return type(a) is type(b) and (a == b or a != a)


@pytest.mark.parametrize("P", SIZES)
def test_ranks_of_mpi_get_what_threads_get_to_the_last_bit(ranks, P):
    expected = run_ranks(P, all_verbs)
    for rank in range(P):
        place, found, kept = ranks[rank]["verbs"][P]
        assert place == rank
        assert kept, "the team of a communicator is made once"
        different = [verb for verb in expected[rank] if not equal(expected[rank][verb], found[verb])]
        assert not different


def test_messages_that_are_too_long_for_mpi_are_cut(ranks):
    for rank, expected in enumerate(run_ranks(4, all_verbs)):
        assert equal(expected, ranks[rank]["verbs"]["cut"])


@pytest.mark.parametrize("P", SIZES)
def test_the_verbs_agree_with_numpy_on_all_samples(ranks, P):
    case, found = Case(P), ranks[P - 1]["verbs"][P][1]
    np.testing.assert_allclose(found["sum"], case.parts.sum(axis=0), rtol=1e-13, atol=0)
    np.testing.assert_allclose(found["number"], sum(range(P)) + 0.1 * P)
    np.testing.assert_allclose(found["matrix"], case.long.sum(axis=0).T, rtol=0, atol=1e-13)
    assert found["none"].shape == (0, 2)
    assert found["max"][:2] == [P - 1, -np.inf]
    assert np.isnan(found["max"][2])
    positive = np.flatnonzero(case.score > 0)
    best = positive[np.lexsort((positive, -case.score[positive]))]
    for k, top in zip(KS, found["top"], strict=True):
        np.testing.assert_array_equal(top, best[:k])
        assert top.dtype == np.int64
    for name, values in case.labels.items():
        np.testing.assert_array_equal(found["union"][name], np.unique(values))
    assert found["nothing"].dtype == np.int64
    for joined in (found["join"][:5], found["join"][5:]):
        np.testing.assert_array_equal(joined[0], case.rows)
        np.testing.assert_array_equal(joined[1], case.rows.astype(np.float32)[:, ::2])
        np.testing.assert_array_equal(joined[2], case.labels["str"])
        assert joined[3].tolist() == case.labels["object"].tolist()
        np.testing.assert_array_equal(joined[4], case.rows > 0)
    assert found["large"].shape == (P * (P + 1) // 2, 40_000)
    assert found["large"][:, -1].tolist() == [rank for rank in range(P) for _ in range(rank + 1)]
    assert found["agree"][:3] == [0, None, {"rank": 0}]
    assert found["collect"][0] == list(range(P))


def test_every_rank_gets_the_same_error_and_the_team_goes_on(ranks):
    for rank in ranks:
        labels, rows, types, largest = rank["errors"]
        assert "rank 0 has strings such as" in labels
        assert "rank 1 has numbers such as" in labels
        assert "number of rows only" in rows
        assert "number of rows only" in types
        assert largest == 3


def test_bytes_received_are_those_of_the_cost_model(ranks):
    for rank in ranks:
        cost = rank["facts"]["cost"]
        assert cost["top"] == {"messages": 1, "sent": 16 * 20, "received": 16 * 20 * 4}
        assert cost["join"] == {"messages": 1, "sent": 6 * 64, "received": 4 * 6 * 64}
        assert cost["sum"]["messages"] == cost["max"]["messages"] == 1
        facts = rank["facts"]["facts"]
        assert facts["ranks"] == 4
        assert facts["hosts"] == 1
        assert facts["bytes_received"] > facts["bytes_sent"] > 0
        assert facts["seconds_waited"] > 0


def test_a_communicator_that_the_user_frees_takes_those_of_its_team_with_it(ranks):
    assert [rank["freed"] for rank in ranks] == [[True] * (4 - rank) for rank in range(4)]


def test_the_team_knows_its_hosts(ranks):
    for rank in ranks:
        assert rank["facts"]["ranks_on_host"] == 4
        assert rank["facts"]["uniform"]
        assert len(set(rank["facts"]["hosts"])) == 1


def test_nothing_of_mpi_is_imported_before_it_is_asked_for():
    script = (
        "import sys, multimargin; from sklearn.datasets import load_iris; "
        "multimargin.KernelSVC(engine='auto').fit(*load_iris(return_X_y=True)); "
        "assert not [name for name in sys.modules if name.startswith('mpi4py')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_without_mpi4py_the_error_says_what_to_install(monkeypatch):
    from multimargin.engines.mpi.team import MpiTeam

    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r'pip install "multimargin\[mpi\]"'):
        MpiTeam.assemble()
