"""A cost model of fits on several ranks: does it predict 2 to 4 ranks, and what does it say of 256?

Costs of a kernel value, an update, a selection, a proof, a block and its solution come from a fit on one
rank. That of a message comes from a test on two ranks. What only a team does (taking the steps of other
ranks, messages in the midst of a fit and of ranks that share cores, rounds) comes from small problems on 2,
3 and 4 ranks: mnist of 5,000 and isolet of 3,000 rows. First fits of a process do not count: how long it
takes to touch memory for the first time varies. What a fit does is counted, and does not depend on the number
of ranks, but for the descents that ranks share: their updates and messages are counted for each number of
ranks. From these the model predicts CPU seconds of the slowest rank (without those in which it waits) and the
bytes that it receives, for mnist (10,000 and 20,000 rows) and isolet (6,000 rows), by "auto" and "pdasmc".

Claims: both are within 20% at 2, 3 and 4 ranks.

Then the model extrapolates to 256 ranks and 10^7 rows. Counts grow as powers of n, fitted to mnist of 5,000,
10,000, 20,000 and 60,000 rows: far beyond these the table is a guess at the order of magnitude. It says from
how many ranks on the block solve takes longer than all divided work, and what shares it then: Niu & Yuan's
Algorithm 5 the small blocks of "pdasmc", and a descent of all ranks the growing blocks of "auto".

Claim: the efficiency at 16 ranks of one host on mnist with 60,000 rows is at least 0.7 by the model. For this
size nothing is extrapolated: costs and counts are those of a fit on one rank, and updates and messages of the
shared descent are counted on 16 ranks, however few cores there are.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, replace
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from multimargin.engines.cpu.layouts import Layout
from multimargin.engines.cpu.solvers import steps_at_once
from multimargin.kernels import RBF
from multimargin.system.threads import own_cores

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.checks.mpi import parameters, prepared
from benchmarks.lib.cost_model import (
    Costs,
    Counts,
    Growth,
    Network,
    Prediction,
    Team,
    Together,
    efficiency,
    limit_of,
    predict,
    seconds,
)
from benchmarks.lib.plot import draw_panels
from benchmarks.lib.ranks import Ranks, TeamFit, call, mpiexec
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.traffic import row_bytes
from benchmarks.lib.turns import take_turns
from benchmarks.workers.message_costs import message_costs, product_share

OFF = 0.20
CORES = len(own_cores())
RANKS = (1, 2, 3, 4)
SOLVERS = ("auto", "pdasmc")
RUNS = (("mnist", 10_000), ("mnist", 20_000), ("isolet", 6_000))
LATER = 3  # fits of a process after the first, in which touching memory takes a time that varies
CACHE = 2500.0  # MB of every rank: whether the last block of all support vectors fits depends on it
SMALL = (("mnist", 5_000), ("isolet", 3_000))  # for what only a team does; the first also for growth
FAR_RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FAR_ROWS = (60_000, 1_000_000, 10_000_000)
EFFICIENCY, AT_RANKS, AT_ROWS = 0.7, 16, 60_000
AT_CACHE = 4500.0  # MB: one rank keeps the rows of all support vectors
ETHERNET = Network("10 Gb/s Ethernet", 2e-5, 1.1e9)


class Schedule(NamedTuple):
    """A solver, and whether its block solve is shared."""

    solver: str
    shared: bool

    @property
    def name(self) -> str:
        return self.solver + (", shared solve" if self.shared else "")


TEAMS = (2, 3, 4)  # ranks of small problems
TOGETHER = (*TEAMS, AT_RANKS)  # ranks whose shared descents are counted
SCHEDULES = (Schedule("auto", False), Schedule("pdasmc", False), Schedule("pdasmc", True))


class Calibration(NamedTuple):
    """Costs that no single fit shows."""

    message: float
    byte: float
    product: float  # part of an inner iteration that can be shared
    per_round: dict[str, float]  # messages
    here: Network
    team: dict[str, Team]
    together: dict[str, dict[int, Together]]

    def costs(self, fit: TeamFit, counts: Counts, convert: float, solver: str) -> Costs:
        known = {"convert": convert, "byte": self.byte, "message": self.message}
        return self.team.get(solver, Team()).added_to(Costs.of(fit, counts, self.product, **known))

    def predict(
        self,
        solver: str,
        counts: Counts,
        costs: Costs,
        ranks: int,
        shared_solve: bool = False,
        together: Together | None = None,
        cores: float = math.inf,
    ) -> Prediction:
        """One of ``ranks`` ranks, which descend ``together`` as counted; else as in the small problem."""
        if together is None:
            known = self.together[solver]
            nearest = Together() if ranks == 1 else known[max(p for p in known if p <= ranks)]
            together = replace(nearest, most=steps_at_once(ranks))
        per_round = self.per_round[solver]
        return predict(counts, costs, ranks, per_round, together, shared_solve=shared_solve, cores=cores)


def calibrated(report: Report, repeats: int) -> tuple[Calibration, dict[str, Counts]]:
    """By messages between two ranks, and by fits of small problems on one and on several ranks."""
    both = call(2, message_costs)
    cost = {key: float(np.mean([rank[key] for rank in both])) for key in both[0]}
    share = call(1, product_share)[0]
    runs = [measured(*SMALL[0], both_by(1, *TOGETHER), repeats)]
    runs += [measured(*run, both_by(1, *TEAMS), repeats) for run in SMALL[1:]]
    fits = runs[0].fits
    together = {s: {p: Together.of(fits[s, 1], fits[s, p], p) for p in TOGETHER} for s in SOLVERS}
    per_round = {
        s: (fits[s, 2]["messages"] - fits[s, 2]["batches"]) / fits[s, 2]["iterations"] for s in SOLVERS
    }
    hop = max(0.0, cost["latency"] - cost["message"])  # a message's CPU time counts once, whatever its way
    here = Network("memory of one host", hop, 1 / cost["transfer"])
    own = Calibration(cost["message"], cost["byte"], share, per_round, here, {}, together)
    own.team.update({solver: team_costs(own, runs, solver) for solver in SOLVERS})
    print(
        f"message: {cost['message'] * 1e6:.1f} µs of CPU, {cost['latency'] * 1e6:.1f} µs in all; "
        f"byte: {cost['byte'] * 1e9:.2f} ns of CPU, {cost['transfer'] * 1e9:.2f} ns in all; "
        f"an inner iteration of pdasmc is {share:.0%} product"
    )
    for s, team in own.team.items():
        print(
            f"{s}: {per_round[s]:.1f} messages in a round; on a team {team.taken * 1e6:.2f} µs per step of "
            f"another rank, {team.message * 1e6:.1f} µs more per message ({team.crowded * 1e6:.1f} µs if "
            f"ranks share cores), {team.round * 1e3:.2f} ms more per round"
        )
    print(
        f"auto descends together, {SMALL[0][1]:,} rows: "
        + ", ".join(
            f"{p} ranks {found.updates:.2f} times the updates, {found.batch:.1f} in a message"
            for p, found in together["auto"].items()
        )
        + "\n"
    )
    teams = {s: team._asdict() for s, team in own.team.items()}
    report.keep("messages", cost | {"product": share, "per_round": per_round, "team": teams})
    report.keep(
        "together", {s: {p: asdict(one) for p, one in known.items()} for s, known in together.items()}
    )
    return own, {solver: Counts.of(fits[solver, 1], *runs[0].shape) for solver in SOLVERS}


def team_costs(own: Calibration, runs: list[Measured], solver: str) -> Team:
    """What only a team does, from small problems; ``own`` knows no such costs yet."""
    found = []
    for fits, shape, convert in runs:
        counts = Counts.of(fits[solver, 1], *shape)
        costs = own.costs(fits[solver, 1], counts, convert, solver)
        for p in TEAMS:
            fit = fits[solver, p]
            counted = Together.of(fits[solver, 1], fit, p)
            found.append(
                (
                    fit.work,
                    counts.rounds,
                    own.predict(solver, counts, costs, p, together=counted, cores=CORES),
                )
            )
    return Team.of(found)


class Measured(NamedTuple):
    """Fits (solver, ranks) of least CPU seconds; n, m and the bytes of a row; seconds to convert one."""

    fits: dict[tuple[str, int], TeamFit]
    shape: tuple[int, int, float, float]
    convert: float


def both_by(*ranks: int) -> list[tuple[str, int]]:
    return [(solver, p) for solver in SOLVERS for p in ranks]


def measured(
    name: str, rows: int | None, keys: list[tuple[str, int]], repeats: int, later: int = LATER
) -> Measured:
    """Fits by these solvers on so many ranks."""
    problem = prepared(name, rows, 2)
    X, y = problem.splits[0].X_train, problem.splits[0].y_train
    fits: dict[tuple[str, int], list[TeamFit]] = {key: [] for key in keys}
    cache = AT_CACHE if rows == AT_ROWS else CACHE
    with Ranks(problem.splits[0]) as ranks:

        def turn(key: Any) -> float:
            made = ranks.fits(key[1], later + 1, **parameters(problem, key[0], cache_size=cache))[1:]
            fits[key].extend(made)
            return min(fit.work for fit in made)

        take_turns(fits, turn, repeats)
    best = {key: min(made, key=lambda fit: fit.work) for key, made in fits.items()}
    shape = X.shape[0], len(np.unique(y)), *row_bytes(X, problem.gamma)
    return Measured(best, shape, conversion(X, problem.gamma))


def conversion(X: np.ndarray, gamma: float) -> float:
    """CPU seconds to take a compact row out of many and to bring it into native form."""
    layout, rows = Layout.plan(RBF(gamma), X, "auto"), np.random.default_rng(0).permutation(len(X))[:400]
    compact, times = layout.compact(X), []
    for _ in range(20):
        start = process_time()
        layout.of_compact(compact[rows])
        times.append(process_time() - start)
    return min(times) / len(rows)


def within(ratio: float) -> bool:
    return abs(ratio - 1) <= OFF


def check_run(report: Report, table: Table, text: str, found: Measured, own: Calibration) -> dict:
    """Predictions beside what was measured; the counts and costs of each solver."""
    (fits, shape, convert), known = found, {}
    for solver in SOLVERS:
        one = fits[solver, 1]
        counts = Counts.of(one, *shape)
        costs = own.costs(one, counts, convert, solver)
        report.keep("costs", {"run": text, "solver": solver} | asdict(costs) | {"counts": asdict(counts)})
        counted = {p: Together.of(one, fits[solver, p], p) if p > 1 else Together() for p in RANKS}
        guesses = {p: own.predict(solver, counts, costs, p, together=counted[p], cores=CORES) for p in RANKS}
        known[solver] = counts, costs, guesses
        for ranks in RANKS:
            fit, guess = fits[solver, ranks], guesses[ranks]
            bytes_ = fit.most("received") if ranks > 1 else 0
            table.row(
                f"{text}, {solver}",
                ranks,
                *(f"{value:.2f}" for value in (fit.work, guess.cpu, guess.cpu / fit.work)),
                *(f"{value:.2f}" for value in (guess.divided, guess.blocks, guess.solve, guess.talk)),
                *(f"{value / 1e6:.1f}" for value in (bytes_, guess.received)),
                f"{guess.received / bytes_:.2f}" if bytes_ else "",
                f"{fit['seconds']:.1f}",
            )
            report.keep("runs", {"run": text, "solver": solver, "ranks": ranks, "cpu": fit.work})
    for solver in SOLVERS:
        pairs = [(fits[solver, p], guess) for p, guess in known[solver][2].items() if p > 1]
        for what, ratios in (
            ("CPU seconds", [guess.cpu / fit.work for fit, guess in pairs]),
            ("bytes", [guess.received / fit.most("received") for fit, guess in pairs]),
        ):
            report.claim(
                f"{text}, {solver}: {what} at 2, 3 and 4 ranks within {OFF:.0%}",
                all(map(within, ratios)),
                ", ".join(f"{ratio:.2f}" for ratio in ratios),
            )
    return {solver: found[:2] for solver, found in known.items()}


def unit_costs(known: dict[str, dict]) -> None:
    print("\nCosts on one rank, nanoseconds (of an inner iteration: microseconds)")
    heads = ("run", "kernel value", "update", "selection", "proof value", "small block", "block", "inner")
    table = Table(heads, (24, 12, 8, 9, 11, 11, 8, 8))
    for text, solvers in known.items():
        for solver, (_, cost) in solvers.items():
            parts = [cost.row_value, cost.update, cost.select, cost.proof_value]
            parts += [cost.small_value, cost.block_value]
            inner = (cost.product + cost.rest) * 1e6
            table.row(f"{text}, {solver}", *(f"{value * 1e9:.2f}" for value in parts), f"{inner:.1f}")


def limit_text(schedule: Schedule, counts: Counts, costs: Costs) -> str:
    """From how many ranks on the block solve takes longer than the divided work."""
    return "shared" if schedule.shared or not counts.inner else f"{limit_of(counts, costs):.0f}"


def extrapolate(report: Report, growth: dict[str, tuple[Growth, Costs]], own: Calibration) -> None:
    print(f"\nBy the model, {ETHERNET.name}: seconds (efficiency) of mnist's kind of data")
    heads = ("schedule", "rows", "SVs", *(f"P={ranks}" for ranks in FAR_RANKS), "solve limits from P")
    table = Table(heads, (20, 11, 9, *([16] * len(FAR_RANKS)), 19))
    panels: dict[str, dict] = {f"{n:,} rows": {} for n in FAR_ROWS}
    for schedule in SCHEDULES:
        grown, costs = growth[schedule.solver]
        for n in FAR_ROWS:
            counts = grown.at(n)
            guesses = {
                ranks: own.predict(schedule.solver, counts, costs, ranks, schedule.shared)
                for ranks in FAR_RANKS
            }
            share = {p: efficiency(guesses[1], guess, p, ETHERNET) for p, guess in guesses.items()}
            table.row(
                schedule.name,
                f"{n:,}",
                f"{counts.support:,.0f}",
                *(f"{seconds(guess, p, ETHERNET):,.0f} ({share[p]:.2f})" for p, guess in guesses.items()),
                limit_text(schedule, counts, costs),
            )
            panels[f"{n:,} rows"][schedule.name] = (list(share), list(share.values()))
            facts = {"schedule": schedule.name, "rows": n, "efficiency": share}
            report.keep("extrapolated", facts | {"bytes": {p: g.received for p, g in guesses.items()}})
    draw_panels(report, "cost_model", panels, "ranks", "efficiency", log="x")


def check_far(report: Report, found: Measured, own: Calibration) -> None:
    """The bar at 16 ranks, and where the time of a rank goes there."""
    one, many = found.fits["auto", 1], found.fits["auto", AT_RANKS]
    together = {"auto": Together.of(one, many, AT_RANKS)}
    print(
        f"\nmnist {AT_ROWS:,} by the model, {AT_RANKS} ranks: auto takes {together['auto'].updates:.2f} "
        f"times the updates, {together['auto'].batch:.1f} in a message (counted)"
    )
    heads = (
        "schedule",
        "T1",
        f"T{AT_RANKS}",
        "divided",
        "blocks",
        "solve",
        "messages",
        "MB",
        "solve limits from",
    )
    table = Table(heads, (22, 8, 8, 8, 8, 8, 8, 8, 17))
    for schedule in SCHEDULES:
        solver = schedule.solver
        counts = Counts.of(found.fits[solver, 1], *found.shape)
        costs = own.costs(found.fits[solver, 1], counts, found.convert, solver)
        one = own.predict(solver, counts, costs, 1)
        many = own.predict(solver, counts, costs, AT_RANKS, schedule.shared, together.get(solver))
        total = seconds(many, AT_RANKS, own.here)
        table.row(
            schedule.name,
            *(f"{value:.2f}" for value in (one.cpu, total, many.divided, many.blocks, many.solve)),
            f"{total - many.cpu + many.talk:.2f}",
            f"{many.received / 1e6:.0f}",
            limit_text(schedule, counts, costs),
        )
        share = efficiency(one, many, AT_RANKS, own.here)
        text = f"{schedule.name}: efficiency at {AT_RANKS} ranks, mnist {AT_ROWS:,}, at least {EFFICIENCY}"
        report.claim(f"{text}, by the model", share >= EFFICIENCY, f"{share:.2f}")


def main() -> int:
    parser = options(__doc__, repeats=1)
    args = parser.parse_args()
    report = Report("cost_model", args, words=("PASS", "MISS"))
    mpiexec()
    own, small = calibrated(report, args.repeats)
    heads = ("run", "ranks", "CPU", "model", "ratio", "divided", "blocks", "solve", "talk", "MB", "model")
    table = Table((*heads, "ratio", "wall"), (24, 5, 7, 7, 5, 7, 7, 7, 7, 8, 8, 5, 6))
    known: dict[str, dict[str, tuple[Counts, Costs]]] = {}
    for name, rows in RUNS:
        text = name if rows is None else f"{name} {rows:,}"
        known[text] = check_run(report, table, text, measured(name, rows, both_by(*RANKS), args.repeats), own)
    unit_costs(known)
    far = measured("mnist", AT_ROWS, [*both_by(1), ("auto", AT_RANKS)], 1, later=1)
    growth = {}
    for solver in SOLVERS:
        largest = Counts.of(far.fits[solver, 1], *far.shape)
        counts = [small[solver], *(known[f"mnist {n:,}"][solver][0] for n in (10_000, 20_000)), largest]
        growth[solver] = Growth.of(counts), own.costs(far.fits[solver, 1], largest, far.convert, solver)
        report.keep("growth", {"solver": solver, "exponents": growth[solver][0].exponents})
    extrapolate(report, growth, own)
    check_far(report, far, own)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
