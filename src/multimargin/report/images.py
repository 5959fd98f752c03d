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
_SMOOTH = 0.75  # neighbours of an image differ by less than this share of what any two pixels differ by


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
    """Not negative, and neighbours in both directions are more alike than pixels of any two places."""
    if pixels.min() < 0 or pixels.max() == pixels.min():
        return False
    flat = pixels.reshape(len(pixels), -1)
    shuffled = flat[:, np.random.default_rng(0).permutation(flat.shape[1])]
    usual = np.abs(flat - shuffled).mean()
    across, down = (np.abs(np.diff(pixels, axis=axis)).mean() for axis in (2, 1))
    return bool(max(across, down) < _SMOOTH * usual)


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
