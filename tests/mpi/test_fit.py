"""KernelSVC under mpiexec: fits, stored models, prediction without MPI, and the example."""

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from launch import need_mpi, on_ranks, run_script

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mpi_train.py"


@functools.cache
def outcome(P):
    """Results of all ranks, and what a process that cannot import mpi4py predicts with the stored model."""
    from fits import X, results

    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), X)
        np.save(Path(folder, "wide.npy"), np.random.default_rng(0).normal(size=WIDE))
        found = on_ranks(P, results, folder)
        program = (
            "import sys, pickle; sys.modules['mpi4py'] = None; import numpy as np; "
            f"model = pickle.load(open({str(Path(folder, 'model'))!r}, 'rb')); "
            f"print(*model.predict(np.load({str(Path(folder, 'X.npy'))!r})))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    return found, np.array(done.stdout.split(), dtype=int)


@functools.cache
def one_process():
    """The decision values of the same fits in one process."""
    from fits import WEIGHT, X, Y, svc

    plain = svc().fit(X, Y).decision_function(X)
    weighted = svc(class_weight="balanced").fit(X, Y, WEIGHT).decision_function(X)
    text = svc().fit(X, np.where(Y == 0, "zero", "some other label")).decision_function(X)
    return {"weights": weighted, "text": text}, plain


WIDE = (240, 6000)  # a file of 11 MB
RANKS = pytest.mark.parametrize("P", [pytest.param(2, marks=pytest.mark.slow), 3])


@RANKS
def test_every_rank_has_the_model_of_one_process(P):
    need_mpi()
    special, plain = one_process()
    for rank in outcome(P)[0]:
        for name, (values, _) in rank["found"].items():
            np.testing.assert_allclose(values, special.get(name, plain), atol=2e-3, err_msg=name)


@RANKS
def test_all_ranks_have_the_same_bits(P):
    need_mpi()
    first, *others = outcome(P)[0]
    for other in others:
        for name, (values, support) in first["found"].items():
            assert other["found"][name][0].tobytes() == values.tobytes()
            assert other["found"][name][1].tobytes() == support.tobytes()


@RANKS
def test_an_error_of_all_ranks_can_be_caught_and_the_next_fit_works(P):
    need_mpi()
    messages = {rank["failed"] for rank in outcome(P)[0]}
    assert len(messages) == 1
    assert "At least 2 classes are needed" in messages.pop()


@RANKS
def test_the_root_has_the_model_and_warm_starts_from_it(P):
    need_mpi()
    ranks = outcome(P)[0]
    assert [rank["has model"] for rank in ranks] == [True] + [False] * (P - 1)
    cold, warm = ranks[0]["warm"]
    assert warm < cold
    assert all(rank["warm"] == (cold, warm) for rank in ranks)


@RANKS
def test_a_stored_model_predicts_where_there_is_no_mpi4py(P):
    need_mpi()
    from fits import X, Y, svc

    one = svc().fit(X, Y)
    best, next_best = np.sort(one.decision_function(X), axis=1)[:, :-3:-1].T
    clear = best - next_best > 1e-4  # else the label depends on the last digits of two equal scores
    assert clear.mean() > 0.95
    found, stored = outcome(P)
    np.testing.assert_array_equal(stored[clear], one.predict(X)[clear])
    parts = np.concatenate([rank["predicted"] for rank in found])
    np.testing.assert_array_equal(parts, stored[: len(parts)])


@RANKS
def test_a_rank_reads_only_its_part_of_a_memory_mapped_file(P):
    need_mpi()
    whole = 8 * WIDE[0] * WIDE[1]
    for rank in outcome(P)[0]:
        if rank["read"] is None:
            pytest.skip("the system does not say what was read")
        assert 0.9 * whole / P <= rank["read"] <= whole / P + 2**22  # pages may have 2 MB


@RANKS
def test_the_trace_has_what_the_messages_cost(P):
    need_mpi()
    facts = outcome(P)[0][0]["facts"]
    assert facts["ranks"] == P
    assert facts["bytes_sent"] > 0
    assert facts["seconds_waited"] >= 0


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLE.exists(), reason="the tests run without the source tree")
def test_the_example_works_with_and_without_mpiexec():
    need_mpi()
    two = run_script(2, str(EXAMPLE))
    one = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60)
    assert two.code == one.returncode == 0, two.err + one.stderr
    assert two.out.startswith("2 ranks: converged")
    assert two.out.splitlines()[1] == one.stdout.splitlines()[1]  # the same digits are right
