"""What the ranks of ``test_team.py`` do. It imports little, so that they start quickly."""

import sys

import numpy as np
from faulty import only_the_team

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

    MpiTeam = only_the_team()
    messages = sys.modules["multimargin.engines.mpi.messages"]
    world, found, freed = MPI.COMM_WORLD, {}, []
    for size in SIZES:
        part = world.Split(world.rank // size, world.rank)
        if world.rank < size:
            team = MpiTeam.assemble(part)
            again = MpiTeam.assemble(part)
            found[size] = (team.rank, all_verbs(team), again is team)
            part.Free()
            freed.append(not team._owned)
    team = MpiTeam.assemble()
    messages._MOST_BYTES = 1000  # longer ones are cut
    found["cut"] = all_verbs(team)
    messages._MOST_BYTES = 1 << 30
    return {"verbs": found, "freed": freed, "errors": bad_calls(team), "facts": counted(team)}


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
