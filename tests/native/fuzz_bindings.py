"""Call the native functions with broken arguments: a million calls by `make fuzz`.

    python tests/native/fuzz_bindings.py --inputs 1000000 --first 0

Every call has a number, from which it is made: sound arguments, of which some are damaged: other
shapes, strides, types and values, NaN, huge ids, nothing at all. A call must return, or raise one of
ALLOWED, in SECONDS and in MEMORY. A crash ends the process; --each writes the number of every call before it.
"""

import argparse
import faulthandler
import inspect
import os
import random
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import binding_calls

from multimargin import _core

MEMORY = 4 << 30  # bytes that the process may grow by
SECONDS = 60.0  # of one call, on a busy machine
ALLOWED = (ValueError, TypeError, MemoryError, IndexError, OverflowError)
# A sanitizer maps terabytes, and ends a process whose memory is used up (.ci/sanitize.py).
SANITIZED = "MULTIMARGIN_SANITIZED" in os.environ
LARGE = [] if SANITIZED else [1 << 31, (1 << 31) - 1]
NUMBERS = [0, 1, -1, 2, 3, 7, 255, 1 << 15, *LARGE, 1 << 62, (1 << 63) - 1, -(1 << 63), 1 << 64]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-300, 1e22]
THREADS = [-1, 0, 1, 2, 3, 5]  # no call here is large enough to have use for more
TYPES = ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "i8", "?", "c16", "f2", ">f8", "O", "U3"]


def damaged_values(rng, array):
    """Some values replaced by those that nobody expects."""
    array = array.copy()
    if not array.size or array.dtype.kind not in "fiu":
        return array
    flat = array.reshape(-1)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(flat.size)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                flat[at] = rng.choice(FLOATS)
        else:
            limits = np.iinfo(array.dtype)
            flat[at] = min(max(rng.choice((*NUMBERS, flat.size, flat.size + 1)), limits.min), limits.max)
    return array


def damaged_shape(rng, array):
    """Rows or dimensions more or less, or none."""
    change = rng.randrange(8)
    if change == 0:
        return array[:-1]
    if change == 1:
        return np.concatenate([array, array[:1]]) if len(array) else array
    if change == 2:
        return np.ascontiguousarray(array.T)
    if change == 3:
        return array[:0]
    if change == 4 and array.ndim == 2:
        return np.ascontiguousarray(array[:, :-1])
    if change == 5:
        return array[..., None]
    if change == 6:
        return array.reshape(-1)
    return np.zeros((0,) * array.ndim, array.dtype)


def damaged_layout(rng, array):
    """The same values elsewhere, in another order, or read-only."""
    change = rng.randrange(7)
    if change == 0:
        return np.repeat(array, 2, axis=0)[::2]
    if change == 1:
        return array[::-1]
    if change == 2:
        return np.asfortranarray(array)
    if change == 3 and array.ndim == 2:
        return array[:, ::-1]
    if change == 4:
        wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
        wide[..., : array.shape[-1]] = array
        return wide[..., : array.shape[-1]]
    if change == 5 and len(array):
        return np.broadcast_to(array[:1], array.shape)
    array = array.copy()
    array.flags.writeable = False
    return array


def damaged_array(rng, array):
    change = rng.randrange(10)
    if change < 5:
        return damaged_values(rng, array)
    if change < 7:
        return damaged_shape(rng, array)
    if change < 9:
        return damaged_layout(rng, array)
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(TYPES))


def damaged(rng, name, value):
    """Another argument in its place."""
    if rng.random() < 0.02:
        return rng.choice((None, object(), "x", b"", 3, [], np.zeros(0), np.zeros((0, 0))))
    if isinstance(value, np.ndarray):
        return damaged_array(rng, value)
    if isinstance(value, bool):
        return not value
    if name in ("n_threads", "parts"):
        return rng.choice(THREADS)
    if isinstance(value, int):
        return rng.choice((*NUMBERS, value + 1, value - 1))
    if name == "seconds":  # with infinity and many iterations a sound call has no end
        return rng.choice((-1.0, 0.0, 0.5, float("nan")))
    if isinstance(value, float):
        return rng.choice(FLOATS)
    if isinstance(value, str):
        return rng.choice(("", "rbf", "msvm2", "c-svc", "sort", value + "\0", "x" * 1000))
    return value


def one(number):
    """Make call ``number``. Returns its name, and whether it was accepted."""
    rng = random.Random(number)
    made = binding_calls.Calls(np.random.default_rng(number), rng)
    name = rng.choice(binding_calls.NAMES)
    spoil = Spoiler(rng)
    try:
        with np.errstate(all="ignore"):
            getattr(made, name)(spoil)
    except ALLOWED:
        return name, False
    return name, True


class Spoiler:
    """Calls a function with some of its arguments damaged."""

    def __init__(self, rng):
        self.rng = rng

    def __call__(self, function, **arguments):
        if self.rng.random() < 0.7:
            for name in self.rng.sample(
                list(arguments), min(len(arguments), self.rng.choice((1, 1, 1, 2, 3)))
            ):
                arguments[name] = damaged(self.rng, name, arguments[name])
        return function(**arguments)


def limit_memory():
    statm = Path("/proc/self/statm")
    if statm.exists() and not SANITIZED:
        most = int(statm.read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def unused():
    """Native functions and classes that no call uses; functions make Samples."""
    source = inspect.getsource(binding_calls)
    names = [name for name in dir(_core) if not name.startswith("_") and name != "Samples"]
    return [name for name in names if f"_core.{name}" not in source]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--each", action="store_true", help="print the number of each call before it is made")
    args = parser.parse_args()
    missing = unused()
    assert not missing, f"no call of {', '.join(missing)}"
    limit_memory()
    start = shown = time.monotonic()
    counts = {name: [0, 0] for name in binding_calls.NAMES}
    slowest, number, last = 0.0, args.first, args.first + args.inputs
    while number < last and time.monotonic() - start < args.seconds:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        if args.each:
            os.write(1, f"{number}\n".encode())
        begin = time.monotonic()
        try:
            name, accepted = one(number)
        except BaseException:
            print(f"call {number} failed: python {sys.argv[0]} --first {number} --inputs 1", flush=True)
            raise
        counts[name][accepted] += 1
        slowest = max(slowest, time.monotonic() - begin)
        number += 1
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{number:,} of {last:,} calls; to go on from here: --first {number}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    for name, (refused, accepted) in counts.items():
        print(f"{name:24s} {accepted:8,} accepted {refused:8,} refused")
    done, taken = number - args.first, sum(accepted for _, accepted in counts.values())
    print(f"{done:,} calls, {taken:,} accepted, {done - taken:,} refused, slowest {slowest:.3f} s")


if __name__ == "__main__":
    main()
