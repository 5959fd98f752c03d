"""The parameter ``engine``: what it accepts, how it is stored, and that nothing imports mpi4py too early."""

import copy
import pickle
import subprocess
import sys
from typing import ClassVar

import pytest
from sklearn.base import clone
from thread_team import run_ranks

from multimargin import KernelSVC
from multimargin.engines import CpuEngine, Mpi, find_engine
from multimargin.estimators.states import from_plain, to_plain
from multimargin.methods.table import METHODS
from multimargin.system.memory import CACHE_SHARE, available_bytes, cache_bytes
from multimargin.system.team import SOLO, Solo
from multimargin.system.threads import effective_threads, share_of

X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]


class Crowded(Solo):
    """One of four processes on a host."""

    ranks_on_host = 4


def test_importing_the_package_does_not_import_mpi4py():
    program = "import sys, multimargin.engines; sys.exit('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_unfitted_and_fitted_models_that_name_mpi_load_without_mpi4py():
    stored = pickle.dumps(KernelSVC(engine=Mpi(data="shards", comm=SOLO)).fit(X, Y))
    program = (
        "import pickle, sys; model = pickle.loads(sys.stdin.buffer.read()); "
        f"assert model.predict({X}).tolist() == {KernelSVC().fit(X, Y).predict(X).tolist()}; "
        "assert model.engine.data == 'shards' and model.engine.comm is None; "
        "sys.exit('mpi4py' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], input=stored, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"data": "shard"}, "data of Mpi must be one of 'auto', 'same', 'shards', got 'shard'"),
        ({"model": 0}, "model of Mpi must be one of 'all', 'root', got 0"),
        ({"scheme": "diagonal"}, "scheme of Mpi must be one of .*'rows'.*, got 'diagonal'"),
        ({"timeout": 0}, "timeout of Mpi must be a finite number of seconds > 0, got 0"),
        ({"timeout": True}, "timeout of Mpi"),
        ({"timeout": float("inf")}, "timeout of Mpi"),
        ({"comm": "world"}, "comm of Mpi must be a communicator of mpi4py or None, got 'world'"),
    ],
)
def test_wrong_options_are_refused(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        Mpi(**options)


@pytest.mark.parametrize("engine", ["mpy", None, CpuEngine, 3])
def test_unknown_engines_are_refused(engine):
    with pytest.raises(ValueError, match=r"Unknown engine .*'mpi', or a multimargin.engines.Mpi"):
        KernelSVC(engine=engine).fit(X, Y)


def test_the_name_stands_for_the_default_options():
    assert find_engine("mpi") == Mpi() == Mpi("auto", "all", "rows", 60.0)
    shown = "Mpi(data='auto', model='root', scheme='rows', timeout=60.0, comm=None, engine='cpu')"
    assert repr(Mpi(model="root")) == shown


def test_copies_keep_the_communicator_and_stored_options_do_not():
    setting = Mpi(timeout=5.0, comm=SOLO)
    model = KernelSVC(engine=setting)
    assert clone(model).engine.comm is SOLO
    assert copy.copy(setting).comm is copy.deepcopy(setting).comm is SOLO
    assert model.get_params()["engine"] is setting
    for stored in (pickle.loads(pickle.dumps(setting)), from_plain(to_plain(setting))):
        assert stored == Mpi(timeout=5.0)
        assert stored.comm is None


def test_pdasmc_is_dasmc_on_mpi():
    assert METHODS["pdasmc"] == METHODS["dasmc"]
    assert KernelSVC(solver="pdasmc")._setting() == Mpi()
    assert KernelSVC(solver="pdasmc", engine=Mpi(model="root"))._setting() == Mpi(model="root")
    with pytest.raises(ValueError, match="use engine='mpi', or solver='dasmc' with engine='cpu'"):
        KernelSVC(solver="pdasmc", engine="cpu").fit(X, Y)


def test_processes_on_one_host_share_its_cores_and_memory():
    assert effective_threads(None, 1e-6) == 1
    assert effective_threads(3, 0.5) == effective_threads(3)
    both = frozenset(range(8))
    assert share_of(both, [both, both, both]) == pytest.approx(1 / 3)  # 2 of 8 cores each
    left, right = frozenset(range(4)), frozenset(range(4, 8))
    assert share_of(left, [left, right]) == 1  # bound to cores of their own
    assert share_of(left, [left, both]) == 0.5
    assert cache_bytes("auto", 10**6, Crowded()) <= 0.3 * CACHE_SHARE * available_bytes()
    assert cache_bytes(100, 10**6, Crowded()) == 100 * 10**6


def test_all_ranks_have_the_smallest_cache():
    assert run_ranks(3, lambda team: cache_bytes(50 + team.rank, 1000, team)) == [50 * 10**6] * 3


class StatusError(RuntimeError):
    """As libraries of GPUs have it: made of a number, and not of a message."""

    NAMES: ClassVar[dict[int, str]] = {3: "ALLOC_FAILED"}

    def __init__(self, status):
        super().__init__(self.NAMES[status])


@pytest.mark.parametrize(
    ("error", "kind", "match"),
    [
        (KeyError("no such column"), KeyError, r"no such column.* \(on rank 2\)"),
        (StatusError(3), RuntimeError, r"StatusError: ALLOC_FAILED \(on rank 2\)"),
    ],
)
def test_an_error_on_one_rank_is_raised_on_all(error, kind, match):
    def work(team):
        def fail():
            if team.rank == 2:
                raise error
            return team.rank

        with pytest.raises(kind, match=match):
            team.attempt(fail)
        return team.attempt(lambda: team.rank)

    assert run_ranks(3, work) == [0, 1, 2]
