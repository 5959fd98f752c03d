"""Rows that are images: which are, and their PNG files."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

import numpy as np
import scipy.sparse as sp

_SMALLEST = 64  # features: a smaller square is more often a table
_LOOKED_AT = 400  # rows
_ALIKE = 0.25  # by how much more neighbours are correlated than any two places, if rows are images


def shape_of_images(samples: Any, asked: tuple[int, ...] | str | None) -> tuple[int, ...] | None:
    """The shape of a row as an image: the one asked for, or a square if the values look like pixels."""
    if samples is None or asked is None:
        return None
    if isinstance(asked, tuple):
        return asked
    if getattr(samples, "ndim", 0) != 2 or samples.dtype.kind not in "biuf" or not samples.shape[0]:
        return None
    side = math.isqrt(samples.shape[1])
    if side * side != samples.shape[1] or samples.shape[1] < _SMALLEST:
        return None
    rows = dense_rows(
        samples, np.linspace(0, samples.shape[0] - 1, min(_LOOKED_AT, samples.shape[0])).astype(int)
    )
    return (side, side) if _look_like_pixels(rows.reshape(-1, side, side)) else None


def dense_rows(samples: Any, which: Any) -> np.ndarray:
    """Some rows as a dense array of float64."""
    rows = samples[which]
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def _look_like_pixels(pixels: np.ndarray) -> bool:
    """Neighbours in both directions are correlated over the rows, and more so than any two places."""
    spread = pixels.std(axis=0)
    scaled = (pixels - pixels.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    flat = scaled.reshape(len(scaled), -1)
    shuffled = flat[:, np.random.default_rng(0).permutation(flat.shape[1])]
    across = _correlation(scaled[:, :, 1:], scaled[:, :, :-1])
    down = _correlation(scaled[:, 1:], scaled[:, :-1])
    return min(across, down) > _ALIKE + _correlation(flat, shuffled)


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """The mean correlation of places that both vary; 0 if there are none."""
    products = (first * second).mean(axis=0)
    vary = (first.any(axis=0)) & (second.any(axis=0))
    return float(products[vary].mean()) if vary.any() else 0.0


def pixel_range(samples: Any) -> tuple[float, float]:
    """The smallest and the largest value, for one brightness of all images."""
    if sp.issparse(samples):
        return min(0.0, float(samples.min())), max(0.0, float(samples.max()))
    return float(samples.min()), float(samples.max())


def data_address(row: np.ndarray, shape: tuple[int, ...], low: float, high: float) -> str:
    """A PNG file as an address that holds its content: grey, or red, green and blue."""
    scaled = (np.asarray(row, dtype=np.float64) - low) * (255.0 / ((high - low) or 1.0))
    pixels = scaled.clip(0, 255).round().astype(np.uint8).reshape(shape)
    return "data:image/png;base64," + base64.b64encode(_png(pixels)).decode()


def _png(pixels: np.ndarray) -> bytes:
    height, width = pixels.shape[:2]
    kind = 0 if pixels.ndim == 2 else 2
    lines = b"".join(b"\0" + pixels[k].tobytes() for k in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
