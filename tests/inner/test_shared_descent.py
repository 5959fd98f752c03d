"""A descent that several processes share: the optimum of the block, whoever has which samples."""

import numpy as np
import pytest
from oracle import assert_feasible, certify, kernel_matrix, one_hot
from thread_team import run_ranks

from multimargin import _core
from multimargin.system.fixed_point import decoded, encoded

M, N = 5, 120
MACHINES = ("crammer-singer", "weston-watkins")
every_machine = pytest.mark.parametrize("machine", MACHINES)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16])


class Problem:
    """Overlapping clusters; K has the values of its dtype, so that the optimum is that of these."""

    def __init__(self, dtype=np.float64, n=N, scale=3.0, seed=0):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(M, size=n).astype(np.int32)
        X = rng.normal(size=(M, 4))[self.y] + 0.6 * rng.normal(size=(n, 4))
        store = kernel_matrix("rbf", X, gamma=0.3).astype(np.float64 if dtype == np.float64 else np.float32)
        self.K = encoded(store, np.dtype(dtype))
        self.store = decoded(self.K).astype(store.dtype)
        self.C = scale * rng.uniform(0.3, 3.0, n)
        self.alpha, self.G = np.zeros((n, M)), -one_hot(self.y, M)

    def truth(self, alpha, machine):
        return certify(decoded(self.K), self.y, alpha, self.C, machine)


def owners(shares, n=N, seed=0):
    """The samples of each rank, in random order."""
    order = np.random.default_rng(seed).permutation(n)
    return np.split(order, np.rint(np.cumsum(shares)[:-1] * n).astype(int))


def descend(p, machine, parts, *, eps=1e-4, batch=8, sweeps=1000, known=0, room=True, **options):
    """All ranks together: (alpha, G, what the native call returned on each rank, messages)."""

    def work(team):
        own = parts[team.rank]
        K = np.zeros((len(p.y), len(own)), dtype=p.K.dtype)
        K[:, :known] = p.K[:, own[:known]]
        alpha, G = p.alpha[own], p.G[own]
        source = _core.RowSource(
            K=K,
            known=np.full(len(p.y), min(known, len(own))),
            store=p.store,
            slots=np.arange(len(p.y)),
            columns=own,
            places=own,
            diag=np.ones(len(own)),
        )
        how = _core.DescentOptions(eps=eps, max_sweeps=sweeps, seed=3, **options)
        others = _core.SharedArguments(
            batch=batch, rank=team.rank, ranks=team.size, exchange=lambda mine: team.gather(mine).ravel()
        )
        space = np.empty(K.size if room else 0, dtype=K.dtype)
        found = _core.shared_descent(machine, source, G, alpha, p.y[own], p.C[own], how, others, space)
        return own, alpha, G, found, team.calls

    alpha, G, said = p.alpha.copy(), p.G.copy(), []
    for own, rows, gradient, found, calls in run_ranks(len(parts), work):
        alpha[own], G[own] = rows, gradient
        said.append((found, calls))
    assert all(one == said[0] for one in said)  # sweeps, updates, violation, work and messages
    return alpha, G, said[0][0], said[0][1]


SHARES = {
    "one": [1.0],
    "two": [0.5, 0.5],
    "ragged": [0.1, 0.0, 0.85, 0.05],
    "seven": [1 / 7] * 7,
}


@every_machine
@every_dtype
@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("eps", [1e-4, 1e-5])
def test_the_optimum(machine, dtype, shares, eps):
    p = Problem(dtype)
    alpha, G, (_, updates, violation, _), _ = descend(p, machine, owners(SHARES[shares]), eps=eps)
    truth = p.truth(alpha, machine)
    # Gradients of fixed-point blocks are in single precision, unless a smaller violation is asked for.
    rounding = 1e-5 if dtype == np.uint16 and eps == 1e-4 else 1e-9
    assert truth.psi.max() <= eps + rounding
    assert violation == pytest.approx(truth.psi.max(), abs=rounding)
    assert updates > 0
    assert_feasible(alpha, p.y, p.C, machine=machine)
    np.testing.assert_allclose(G, decoded(p.K) @ alpha - one_hot(p.y, M), atol=rounding)


@every_machine
@pytest.mark.parametrize("batch", [1, 2, 64])
def test_any_size_of_batches(machine, batch):
    """Many steps at once are too long together: they are shortened, and the batches become smaller."""
    p = Problem(scale=30.0)
    alpha, *_ = descend(p, machine, owners([0.25] * 4), batch=batch)
    assert p.truth(alpha, machine).psi.max() <= 1e-4 + 1e-9


@every_machine
@pytest.mark.parametrize("sweeps", [0, 1, 2, 3])
def test_the_dual_falls(machine, sweeps):
    """However early it ends, with steps that are far too long at first: all samples are alike."""
    p = Problem(n=60, scale=50.0)
    p.K = p.store = np.full((60, 60), 0.999) + 0.001 * np.eye(60)
    alpha, G, (_, updates, *_), _ = descend(p, machine, owners([1 / 6] * 6, 60), batch=10, sweeps=sweeps)
    assert updates <= (sweeps + 1) * 60
    assert p.truth(alpha, machine).dual <= 1e-12  # what it is at zero
    assert (p.truth(alpha, machine).dual < -1e-3) == (sweeps > 0)
    # Variables that should become 0 do so when 1e-8 of the cost is left.
    np.testing.assert_allclose(G, p.K @ alpha - one_hot(p.y, M), atol=1e-7 * p.C.max())


def test_the_same_bits_again():
    p, parts = Problem(), owners([0.3, 0.3, 0.4])
    one, two = (descend(p, "crammer-singer", parts) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    assert one[2:] == two[2:]


@every_machine
def test_nothing_to_do(machine):
    p = Problem()
    p.alpha, p.G, *_ = descend(p, machine, owners([0.5, 0.5]), eps=1e-5)
    alpha, _, (_, updates, *_), messages = descend(p, machine, owners([0.5, 0.5]), eps=1e-4)
    assert updates == 0 and messages <= 3
    np.testing.assert_array_equal(alpha, p.alpha)


@every_machine
@pytest.mark.parametrize("known", [0, 7, 60])
@pytest.mark.parametrize("room", [False, True])
def test_rows_that_are_known_or_not_and_room_for_copies_or_none(machine, known, room):
    p, parts = Problem(np.float32), owners([0.5, 0.5])
    alpha, *_ = descend(p, machine, parts, known=known, room=room, relax=1.2)
    np.testing.assert_array_equal(alpha, descend(p, machine, parts, known=0, room=room, relax=1.2)[0])
    assert p.truth(alpha, machine).psi.max() <= 1e-4 + 1e-6


def test_only_pairs_near_the_margin_take_part():
    """Classes that are far from the margin are not looked at: they keep their gradient."""
    p = Problem(scale=1.0)
    p.alpha, p.G, *_ = descend(p, "crammer-singer", owners([0.5, 0.5]), eps=0.05)
    few = descend(p, "crammer-singer", owners([0.5, 0.5]), eps=1e-3, width=0.005)
    assert p.truth(few[0], "crammer-singer").dual < p.truth(p.alpha, "crammer-singer").dual
    assert (few[1] == p.G).sum() > 0.3 * p.G.size


def test_the_time_of_one_process_ends_all():
    p = Problem()
    alpha, *_ = descend(p, "crammer-singer", owners([0.5, 0.5]), seconds=0.0, eps=0.0, sweeps=10**9)
    assert_feasible(alpha, p.y, p.C, machine="crammer-singer")


@pytest.mark.parametrize("machine", ["lee-lin-wahba", "one-vs-rest", "msvm2"])
def test_machines_that_cannot(machine):
    with pytest.raises(ValueError, match="crammer-singer and weston-watkins"):
        descend(Problem(), machine, owners([1.0]))


def source(**changes):
    K, ids = np.zeros((4, 2)), np.arange(2)
    given = {"K": K, "known": np.zeros(4, dtype=np.int64), "store": np.zeros((4, 4)), "slots": np.arange(4)}
    return _core.RowSource(**(given | {"columns": ids, "places": ids, "diag": np.ones(2)} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"K": np.zeros((4, 2), dtype=np.float32)}, "dtype of store"),
        ({"known": np.zeros(3, dtype=np.int64)}, "one value per row"),
        ({"known": np.full(4, 3)}, "numbers of columns"),
        ({"slots": np.array([0, 1, 2, 4])}, "slots must be rows"),
        ({"columns": np.array([0, 4])}, "columns of store"),
        ({"places": np.array([0, 4])}, "rows of K"),
        ({"diag": np.ones(3)}, "one value per column"),
    ],
)
def test_bad_sources(changes, message):
    with pytest.raises(ValueError, match=message):
        source(**changes).complete(np.arange(4))


@pytest.mark.parametrize(
    ("batch", "rank", "ranks", "answer", "message"),
    [(0, 0, 1, 1, "batch"), (1, 1, 1, 1, "rank"), (1, 0, 2, 1, "as many numbers of every process")],
)
def test_bad_teams(batch, rank, ranks, answer, message):
    others = _core.SharedArguments(
        batch=batch, rank=rank, ranks=ranks, exchange=lambda mine: np.tile(mine, answer)
    )
    options, y = _core.DescentOptions(eps=1e-3, max_sweeps=1), np.array([0, 1], dtype=np.int32)
    G, alpha, C = -one_hot(y, 2), np.zeros((2, 2)), np.ones(2)
    with pytest.raises(ValueError, match=message):
        _core.shared_descent("crammer-singer", source(), G, alpha, y, C, options, others)


def test_an_error_in_a_message_is_that_of_the_descent():
    def fail(_):
        raise ConnectionError("no answer")

    others = _core.SharedArguments(batch=1, rank=0, ranks=1, exchange=fail)
    options, y = _core.DescentOptions(eps=1e-3, max_sweeps=1), np.array([0, 1], dtype=np.int32)
    G, alpha, C = -one_hot(y, 2), np.zeros((2, 2)), np.ones(2)
    with pytest.raises(ConnectionError, match="no answer"):
        _core.shared_descent("crammer-singer", source(), G, alpha, y, C, options, others)
