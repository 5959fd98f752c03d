"""A team whose ranks are threads of one process: what the ranks of a fit do, without MPI.

It is stricter than MPI: ranks that call different verbs, or different arguments where they must be equal, end
with an error that names both, instead of waiting for each other.
"""

import pickle
import threading

import numpy as np

from multimargin.system.team import Team


class RankFailedError(RuntimeError):
    """Another rank raised an exception, so this one cannot go on."""


class Meeting:
    """The place where the ranks leave their values for each other."""

    def __init__(self, size, timeout):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=timeout)
        self.boards = ([None] * size, [None] * size)  # used in turn, so that one barrier per call is enough
        self.first_failure = None
        self.lock = threading.Lock()

    def fail(self, error):
        with self.lock:
            if self.first_failure is None:
                self.first_failure = error
        self.barrier.abort()


class ThreadTeam(Team):
    """Rank ``rank`` of a team of threads; ``run_ranks`` makes all of them."""

    def __init__(self, rank, meeting):
        self.rank, self.size, self.meeting = rank, meeting.size, meeting
        self.calls = 0
        self.received = {}  # bytes by verb, this rank's own part included

    def exchange(self, verb, value, nbytes=0):
        """Every rank's value, after all have called the same ``verb``."""
        board = self.meeting.boards[self.calls % 2]
        self.calls += 1
        board[self.rank] = (verb, value, nbytes)
        try:
            self.meeting.barrier.wait()
        except threading.BrokenBarrierError:
            message = f"rank {self.rank} waited in {verb}, and another rank failed or did not come"
            raise RankFailedError(message) from None
        verbs = [entry[0] for entry in board]
        if any(other != verb for other in verbs):
            calls = ", ".join(f"rank {rank} called {name}" for rank, name in enumerate(verbs))
            raise AssertionError(f"call {self.calls} of the ranks differs: {calls}")
        kind = verb.split()[0]
        self.received[kind] = self.received.get(kind, 0) + sum(entry[2] for entry in board)
        return [entry[1] for entry in board]

    def sum(self, x):
        mine = np.array(x, dtype=np.float64)
        parts = self.exchange(f"sum of shape {mine.shape}", mine, mine.nbytes)
        total = parts[0].copy()
        for part in parts[1:]:
            total = total + part
        return np.asarray(total)

    def max(self, x):
        return float(np.max(self.exchange("max", float(x), 8)))  # NaN if one is NaN

    def union(self, values):
        mine = np.unique(values)
        parts = [part for part in self.exchange("union", mine, mine.nbytes) if len(part)]
        return np.unique(np.concatenate(parts)) if parts else mine

    def top(self, ids, score, k, most=None):
        sent = k if most is None else min(k, most)
        best = sorted((-s, i) for i, s in zip(ids.tolist(), score.tolist(), strict=True) if s > 0)
        assert most is None or len(best) <= most
        parts = self.exchange(f"top {k} of {sent}", best[:sent], 16 * sent)
        merged = sorted(pair for part in parts for pair in part)[:k]
        return np.array([i for _, i in merged], dtype=np.int64)

    def agree(self, value):
        data = pickle.dumps(value)
        return pickle.loads(self.exchange("agree", data, len(data) if self.rank == 0 else 0)[0])

    def join(self, mine, counts=None):
        known = "unknown" if counts is None else [int(count) for count in counts]
        mine = np.array(mine)
        if counts is not None:
            assert known[self.rank] == len(mine), f"counts say {known[self.rank]} rows, here are {len(mine)}"
        form = f"{mine.dtype} {mine.shape[1:]}"
        return np.concatenate(self.exchange(f"join of {form}, counts {known}", mine, mine.nbytes))

    def gather(self, mine):
        mine = np.array(mine)
        return np.stack(self.exchange(f"gather of {mine.dtype} {mine.shape}", mine, mine.nbytes))

    def collect(self, value):
        data = pickle.dumps(value)
        return [pickle.loads(part) for part in self.exchange("collect", data, len(data))]

    def facts(self):
        return {"ranks": self.size, "bytes_received": sum(self.received.values()), "messages": self.calls}


def run_ranks(P, function, timeout=60.0):
    """What ``function(team)`` returns on each of ``P`` ranks; the first exception of a rank is raised."""
    meeting = Meeting(P, timeout)
    results = [None] * P

    def work(rank):
        team = ThreadTeam(rank, meeting)
        try:
            results[rank] = function(team)
            team.exchange("end", None)  # a rank that ends while others still call something is an error
        except BaseException as error:
            meeting.fail(error)

    threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}") for rank in range(P)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if meeting.first_failure is not None:
        raise meeting.first_failure
    return results
