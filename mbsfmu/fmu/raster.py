"""Small pictures of lines and dots as PNG, the same bytes on every machine."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.model.icon_strokes import Stroke

Floats = NDArray[np.float64]
_SIDE = 96  # pixels
_MARGIN = 10  # pixels


def draw(strokes: Sequence[Stroke]) -> bytes:
    """Return a PNG with the strokes one over the other, as large as the picture allows, on nothing."""
    ends = np.array([end for stroke in strokes for end in (stroke.begin, stroke.end)])
    low, high = ends.min(axis=0), ends.max(axis=0)
    scale = (_SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    y, x = np.mgrid[0:_SIDE, 0:_SIDE] + 0.5
    pixels, cover = np.zeros((_SIDE, _SIDE, 3)), np.zeros((_SIDE, _SIDE, 1))
    for stroke in strokes:
        begin, end = ((np.array(each) - (low + high) / 2) * scale for each in (stroke.begin, stroke.end))
        near = _near(begin, end, 0.5 + stroke.width / 2)
        distance = _distance(x[near] - _SIDE / 2, _SIDE / 2 - y[near], begin, end)
        share = np.clip(0.5 + stroke.width / 2 - distance, 0.0, 1.0)[..., None]
        pixels[near] = pixels[near] * (1 - share) + share * np.array(stroke.colour, dtype=float)
        cover[near] += share * (1 - cover[near])
    colours = np.divide(pixels, cover, out=np.zeros_like(pixels), where=cover > 0)
    return _png(np.concatenate([colours, 255.0 * cover], axis=2).round().astype(np.uint8))


def _near(begin: Floats, end: Floats, reach: float) -> tuple[slice, slice]:
    """Return the rows and columns of all pixels that may be nearer to a line than some pixels."""
    low = np.floor(np.minimum(begin, end) - reach).astype(int) + _SIDE // 2
    high = np.ceil(np.maximum(begin, end) + reach).astype(int) + _SIDE // 2
    return slice(max(_SIDE - high[1], 0), max(_SIDE - low[1], 0)), slice(max(low[0], 0), max(high[0], 0))


def _distance(x: Floats, y: Floats, begin: Floats, end: Floats) -> Floats:
    """Return how far each pixel is from a line."""
    along = end - begin
    share = ((x - begin[0]) * along[0] + (y - begin[1]) * along[1]) / max(float(along @ along), 1e-9)
    nearest = np.clip(share, 0.0, 1.0)
    return np.hypot(x - begin[0] - nearest * along[0], y - begin[1] - nearest * along[1])


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Write red, green, blue and opacity, shape (rows, columns, 4), as PNG (ISO/IEC 15948)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks
