"""Fits across hosts: over TCP, over slow links, and with a link that is cut. For root."""

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import hosts as cluster
from train import digits, train

TRAIN = str(Path(__file__).with_name("train.py"))
ROWS, TIMEOUT = 1500, 4.0
ENOUGH = 100_000  # bytes: what a fit at least sends


class Job:
    """Ranks on all hosts; their output is read as it comes."""

    def __init__(self, made, ranks, *args):
        self.process = subprocess.Popen(
            made.command(ranks, TRAIN, *map(str, args)),
            env=cluster.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.text = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.text += line

    def pids(self, ranks):
        """The ranks' process ids, once all of them have started."""
        until(lambda: all(f"rank{rank} host" in self.text for rank in range(ranks)), 60, self)
        return [
            int(re.search(rf"rank{rank} host \S+ pid (\d+)", self.text).group(1)) for rank in range(ranks)
        ]

    def finish(self, limit):
        self.process.wait(limit)
        self.reader.join(5)

    def kill(self):
        self.process.kill()
        self.process.wait()


def until(true, limit, job):
    end = time.monotonic() + limit
    while not true():
        assert time.monotonic() < end, f"not in {limit} s; the ranks said:\n{job.text}"
        time.sleep(0.05)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def fit(made, ranks, expected):
    """A fit gives the model of one process, and its messages went over the links."""
    before = [made.bytes_sent(k) for k in range(1, made.count + 1)]
    begin = time.monotonic()
    job = Job(made, ranks, ROWS, 0, 60)
    try:
        job.finish(120)
    finally:
        job.kill()
    assert job.process.returncode == 0, job.text
    sent = [made.bytes_sent(k) - b for k, b in enumerate(before, 1)]
    result = json.loads(re.search("RESULT (.*)", job.text).group(1))
    assert set(re.findall(r"host (\S+) pid", job.text)) == {made.name(k) for k in range(1, made.count + 1)}
    assert abs(result["dual"] - expected.dual_objective_) < 1e-3 * abs(expected.dual_objective_), result
    assert result["gap"] < 1e-2 * abs(result["dual"]), result
    assert min(sent) > ENOUGH, f"only {sent} bytes went over the links"
    seconds = time.monotonic() - begin
    return f"dual {result['dual']:.3f}, {min(sent):,} bytes or more over every link, {seconds:.1f} s"


def cut(made, ranks):
    """After a cut all ranks end, on both sides of it, and the message names a rank that cannot be heard."""
    job = Job(made, ranks, ROWS, 100, TIMEOUT)
    try:
        pids = job.pids(ranks)
        time.sleep(3.0)  # fits are under way
        assert all(map(alive, pids)), job.text
        made.cut(2)
        begin = time.monotonic()
        until(lambda: not any(map(alive, pids)), 3 * TIMEOUT, job)
        seconds = time.monotonic() - begin
        until(lambda: "no sign of life" in job.text, 5, job)
    finally:
        job.kill()  # mpiexec itself waits for the lost host
    said = re.search(r"rank (\d+) on host (\S+) has given no sign of life for 4 s", job.text)
    assert said, job.text
    assert said.group(2) == made.name(2), said.group()
    return f"all {ranks} ranks ended {seconds:.1f} s after the cut (timeout {TIMEOUT:g} s): {said.group()}"


def scenarios(expected):
    """(name, hosts, ranks, delay of their links in seconds, what happens there)."""
    for count in (2, 3):
        for ranks in (count, count + 1):
            yield "a fit", count, ranks, 0.0, lambda made, P: fit(made, P, expected)
        yield "a fit over links of 1 ms", count, count, 1e-3, lambda made, P: fit(made, P, expected)
        yield "a cut link", count, count, 0.0, cut


def main():
    reason = cluster.why_not()
    if reason:
        print(f"make test-cluster was skipped: {reason}.")
        return 0
    failed = 0
    for name, count, ranks, delay, play in scenarios(train("cpu", *digits(ROWS))):
        try:
            with cluster.hosts(count, delay) as made:
                words = play(made, ranks)
            print(f"passed: {name}, {count} hosts, {ranks} ranks: {words}", flush=True)
        except (AssertionError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"FAILED: {name}, {count} hosts, {ranks} ranks: {error}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
