"""The GPU: CuPy, the kernels of this room, and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

SHARE = 0.8  # of the free memory of the device, for cache_size="auto"
_SOURCES = Path(__file__).parent / "kernels"
_HALF_RATE = 4  # a device whose float64 is at most so many times slower computes products in float64
_RATIO = 87  # cudaDevAttrSingleToDoublePrecisionPerfRatio
# What messages of CuPy and CUDA's libraries have if the device has no memory left; NumPy's have neither.
_NO_MEMORY = "out of memory", "alloc_failed"


@cache
def cupy() -> Any:
    """The module, if there is a device that it can use; else an error that says what is missing."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            "engine='cuda' needs CuPy: pip install 'multimargin[cuda]', or engine='cpu'."
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"engine='cuda' found no usable NVIDIA GPU ({error}). Use engine='cpu'."
        ) from error
    if not count:
        raise RuntimeError("engine='cuda' found no NVIDIA GPU. Use engine='cpu'.")
    return cupy


@cache
def is_available() -> bool:
    """Whether there is CuPy and a device."""
    try:
        cupy()
    except (ImportError, RuntimeError):
        return False
    return True


def free_bytes() -> int:
    """Bytes that can be allocated on the device: free ones, and those that CuPy holds unused."""
    cp = cupy()
    return int(cp.cuda.runtime.memGetInfo()[0]) + int(cp.get_default_memory_pool().free_bytes())


@contextmanager
def memory_errors() -> Iterator[None]:
    """MemoryError, with advice, for every error that says that the device has no memory left."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # CuPy's errors of CUDA and its libraries are RuntimeErrors
        if not any(sign in str(error).lower() for sign in _NO_MEMORY):
            raise
        raise MemoryError(
            f"The GPU has no memory left ({error}). Give back what other arrays and programs hold there, "
            "give a smaller cache_size, or use engine='cpu'."
        ) from error


@cache
def multiprocessors() -> int:
    """How many blocks of a persistent kernel run at the same time."""
    return int(cupy().cuda.Device().attributes["MultiProcessorCount"])


@cache
def shared_bytes() -> int:
    """The most shared memory of a block."""
    return int(cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])


@cache
def float64_is_fast() -> bool:
    """Whether float64 arithmetic is at most four times slower than float32: cards for computing centres."""
    cp = cupy()
    ratio = cp.cuda.runtime.deviceGetAttribute(_RATIO, cp.cuda.Device().id)
    return bool(ratio <= _HALF_RATE)


@cache
def function(source: str, name: str, **macros: object) -> Any:
    """A kernel of a source file, compiled for this card with these macros; CuPy caches it on disk."""
    return _module(source, tuple(sorted(macros.items()))).get_function(name)


@cache
def _module(source: str, macros: tuple[tuple[str, object], ...]) -> Any:
    options = ["-std=c++17", *(f"-D{name}={value}" for name, value in macros)]
    return cupy().RawModule(code=_text(source, set()), options=tuple(options))


def _text(source: str, included: set[str]) -> str:
    """A source with its headers in it: CuPy's cache knows a kernel by its text alone."""
    included.add(source)

    def header(line: re.Match[str]) -> str:
        return "" if line[1] in included else _text(line[1], included)

    return re.sub(r'^#include "(.+)"$', header, (_SOURCES / source).read_text(), flags=re.MULTILINE)


def launch(kernel: Any, n: int, *arguments: Any, threads: int = 256) -> None:
    """Run a kernel with a thread per item; those with more items than threads loop."""
    blocks = max(1, min(-(-n // threads), 1 << 16))
    kernel((blocks,), (threads,), arguments)


def describe() -> str:
    """The name of the device."""
    cp = cupy()
    return str(cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["name"].decode())
