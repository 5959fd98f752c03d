"""Every verb of a team of MPI ranks gives what a team of threads gives, and what NumPy gives for all samples.

One start of four ranks serves all tests here: its teams of one, two and three ranks are parts of it.
"""

import subprocess
import sys

import numpy as np
import pytest
from launch import on_ranks
from thread_team import run_ranks

SIZES = [1, 2, 3, 4]
KS = (0, 1, 7, 100)


class Case:
    """The same data on every rank, cut into ragged shards: the second of three or more ranks is empty."""

    def __init__(self, P):
        rng = np.random.default_rng(0)
        self.n = 45
        cuts = np.sort(rng.integers(0, self.n, P - 1))
        if P >= 3:
            cuts[1] = cuts[0]
        self.bounds = [0, *cuts.tolist(), self.n]
        self.score = rng.integers(-3, 6, size=self.n).astype(float)  # many equal ones
        self.score[5] = np.nan
        self.rows = rng.standard_normal((self.n, 3))
        self.parts = rng.standard_normal((P, 50)) * 10.0 ** np.arange(-25, 25)
        self.long = rng.standard_normal((P, 123, 457))
        self.labels = {
            "int": rng.integers(-4, 4, size=self.n),
            "str": rng.choice(["a", "bcd", "éf", "ghijk"], size=self.n),
            "object": rng.choice(np.array(["x", "yy", "zzz"], dtype=object), size=self.n),
            "float": rng.integers(0, 3, size=self.n) + 0.5,
        }

    def of(self, rank):
        return slice(self.bounds[rank], self.bounds[rank + 1])


def all_verbs(team):
    case, rank = Case(team.size), team.rank
    mine, counts = case.of(rank), np.diff(case.bounds)
    ids = np.arange(case.n)[mine]
    labels = {name: values[mine] for name, values in case.labels.items()}
    labels["str"] = np.array(labels["str"].tolist(), dtype=str)  # as wide as this rank needs
    return {
        "sum": team.sum(case.parts[rank]),
        "number": team.sum(float(rank) + 0.1),
        "matrix": team.sum(case.long[rank].T),  # long, and not contiguous
        "none": team.sum(np.zeros((0, 2))),
        "max": [team.max(x) for x in (float(rank), -np.inf, np.nan if rank == team.size - 1 else 1.0)],
        "top": [team.top(ids, case.score[mine], k) for k in KS],
        "union": {name: team.union(values) for name, values in labels.items()},
        "nothing": team.union(np.zeros(0, dtype=np.int64)),
        "join": [
            team.join(rows[mine], counts if known else None)
            for known in (True, False)
            for rows in (
                case.rows,
                case.rows.astype(np.float32)[:, ::2],
                case.labels["str"],
                case.labels["object"],
                case.rows > 0,
            )
        ],
        "large": team.join(np.full((rank + 1, 40_000), rank, dtype=np.int16), range(1, team.size + 1)),
        "agree": [team.agree(v) for v in (rank, None, {"rank": rank}, np.arange(1000) * rank, "x" * 200)],
        "collect": [team.collect(rank), team.collect("abc" * 100 * rank)],
        "bits": team.sum(np.array([1e16, 1.0, -1e16])[(rank + np.arange(9)) % 3]).tobytes(),
    }


def four_ranks():
    """(rank in the team, results) for every size; then what only a team of MPI has."""
    from mpi4py import MPI

    from multimargin.engines.mpi import messages
    from multimargin.engines.mpi.team import MpiTeam

    world, found = MPI.COMM_WORLD, {}
    for size in SIZES:
        part = world.Split(world.rank // size, world.rank)
        if world.rank < size:
            team = MpiTeam.assemble(part)
            again = MpiTeam.assemble(part)
            found[size] = (team.rank, all_verbs(team), again is team)
    team = MpiTeam.assemble()
    messages._MOST_BYTES = 1000  # longer ones are cut
    found["cut"] = all_verbs(team)
    messages._MOST_BYTES = 1 << 30
    return {"verbs": found, "errors": bad_calls(team), "facts": counted(team)}


def bad_calls(team):
    """Errors that every rank gets, after which the team goes on."""
    messages = []
    for call in (
        lambda: team.union(np.array([1, 2]) if team.rank % 2 else np.array(["a"])),
        lambda: team.join(np.zeros((2, 3 if team.rank == 2 else 2))),
        lambda: team.join(np.zeros(2, dtype=np.float32 if team.rank == 2 else np.float64)),
    ):
        try:
            call()
        except ValueError as error:
            messages.append(str(error))
    return [*messages, team.max(team.rank)]


def counted(team):
    before = {verb: vars(count).copy() for verb, count in team.counts.items()}
    k, q = 20, 6
    team.top(np.arange(5) + 5 * team.rank, np.ones(5), k)
    team.join(np.zeros((q, 8)), [q] * team.size)
    team.sum(np.zeros(4))
    team.max(1.0)
    after = {verb: vars(count) for verb, count in team.counts.items()}
    cost = {
        verb: {name: value - before.get(verb, {}).get(name, 0) for name, value in count.items()}
        for verb, count in after.items()
    }
    return {
        "cost": cost,
        "facts": team.facts(),
        "uniform": team.uniform,
        "hosts": team.hosts,
        "ranks_on_host": team.ranks_on_host,
    }


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
