"""A process's part of a growing block: the dense matrix's values, whatever comes and goes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thread_team import run_ranks

from multimargin import _core
from multimargin.engines.cpu.kept_part import KeptPart
from multimargin.system.fixed_point import decoded
from multimargin.system.shard import Shard


def complete(kept, store):
    """Complete all rows from a store with the columns of this process's samples."""
    source = _core.RowSource(
        K=kept.kernel,
        known=kept.known,
        store=store,
        slots=kept.members,
        columns=kept.here,
        places=kept.places,
        diag=np.full(len(kept.here), 0.5),
    )
    source.complete(np.arange(len(kept.members)))


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
@given(data=st.data(), n=st.integers(1, 40), P=st.integers(1, 3), seed=st.integers(0, 1000))
def test_any_sequence_of_working_sets(dtype, data, n, P, seed):
    K = np.random.default_rng(seed).random((n, n)).astype(np.float32)
    largest = data.draw(st.integers(1, n))
    sizes = data.draw(st.lists(st.integers(1, largest), min_size=1, max_size=6))
    bounds = np.linspace(0, n, P + 1).astype(int)

    def work(team):
        here = slice(bounds[team.rank], bounds[team.rank + 1])
        shard = Shard(here.stop - here.start, team)
        kept, rng = KeptPart(shard, largest, np.dtype(dtype)), np.random.default_rng(seed)
        for q in sizes:
            W = rng.permutation(n)[:q]
            kept.admit(W)
            members = kept.members
            assert len(np.unique(members)) == len(members) <= largest
            assert np.isin(W, members).all()
            np.testing.assert_array_equal(members[kept.places] - shard.first, kept.here)
            complete(kept, np.ascontiguousarray(K[:, here]))
            want = K[members][:, here][:, kept.here].astype(np.float64)
            want[kept.places, np.arange(len(kept.here))] = 0.5
            np.testing.assert_allclose(decoded(kept.kernel), want, atol=1e-5)
        return members

    results = run_ranks(P, work)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_values_that_are_known_are_not_gathered_again():
    kept = KeptPart(Shard(10), 10, np.dtype(np.float32))
    kept.admit(np.arange(6))
    complete(kept, np.full((10, 10), 0.25, dtype=np.float32))
    kept.admit(np.arange(7))
    np.testing.assert_array_equal(kept.known, [6] * 6 + [0])
    complete(kept, np.full((10, 10), 0.75, dtype=np.float32))
    values = kept.kernel - np.diag(np.diag(kept.kernel))
    assert set(values[:6, :6].ravel().tolist()) == {0.0, 0.25}
    assert set(values[:6, 6].tolist()) == {0.75}


def test_many_idle_members_leave():
    kept = KeptPart(Shard(100), 100, np.dtype(np.float32))
    kept.admit(np.arange(50))
    kept.admit(np.arange(40))
    assert len(kept.members) == 50
    kept.admit(np.arange(30))
    np.testing.assert_array_equal(kept.members, np.arange(30))
    assert not kept.known.any()
