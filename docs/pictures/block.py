"""Symbols of blocks, as in block diagrams, and of signals, over time."""

from __future__ import annotations

from pictures.drawing import Strokes, arrow, box, dot, line, path, ring, text


def _block(*inside: str, inputs: int = 1) -> Strokes:
    """Draw a box with what comes in and goes out about what it does."""
    places = [40.0] if inputs == 1 else [24.0 + 32.0 * index / (inputs - 1) for index in range(inputs)]
    into = [stroke for y in places for stroke in arrow(6, y, 29, y)]
    return [*box(30, 12, 60, 56), *into, *arrow(90, 40, 115, 40), *inside]


def _axes(*inside: str) -> Strokes:
    """Draw a signal over the axis of time."""
    return [*arrow(14, 68, 14, 8), *arrow(14, 68, 112, 68), *text(108, 58, "t", 11), *inside]


_CROSS = [*line(36, 40, 84, 40, thin=True), *line(60, 18, 60, 62, thin=True)]
_RULE = line(38, 40, 82, 40)

BLOCKS: dict[str, Strokes] = {
    "gain": [*line(32, 14, 32, 66, 86, 40, 32, 14), *arrow(6, 40, 31, 40), *arrow(86, 40, 114, 40),
             *text(48, 40, "k", 16)],
    "sum": [*ring(60, 40, 16), *arrow(12, 40, 43, 40), *arrow(60, 76, 60, 57), *arrow(76, 40, 112, 40),
            *text(36, 30, "+", 14), *text(72, 68, "−", 14), *text(60, 40, "Σ", 15)],
    "limiter": _block(*_CROSS, *line(38, 56, 50, 56, 70, 24, 82, 24)),
    "dead-zone": _block(*_CROSS, *line(38, 58, 52, 40, 68, 40, 82, 22)),
    "table": _block(*line(38, 58, 48, 48, 58, 44, 68, 26, 82, 22), *dot(48, 48), *dot(58, 44), *dot(68, 26)),
    "table-2d": _block(*path("M 40 50 L 56 58 L 80 46 L 64 38 Z M 48 54 L 72 42 M 52 44 L 68 52"),
                       *path("M 40 40 C 50 22 58 36 64 26 C 70 20 76 30 80 30", thin=True), inputs=2),
    "first-order": _block(*text(60, 27, "k", 13), *_RULE, *text(60, 54, "1 + T s", 12)),
    "second-order": _block(*text(60, 27, "k ω²", 12), *_RULE, *text(60, 54, "s²+2ζωs+ω²", 9)),
    "integrator": _block(*text(60, 27, "k", 13), *_RULE, *text(60, 54, "s", 14)),
    "transfer-function": _block(*text(60, 27, "b(s)", 13), *_RULE, *text(60, 54, "a(s)", 13)),
    "rate-limiter": _block(*line(38, 60, 54, 60, 54, 22, 82, 22, dashed=True), *line(38, 60, 54, 60, 72, 22, 82, 22)),
    "pid-controller": _block(*text(60, 40, "PID", 17), *text(36, 19, "r", 10), *text(36, 62, "y", 10), inputs=2),
    "sampled-pid-controller": _block(
        *text(60, 32, "PID", 16), *line(40, 58, 48, 58, 48, 53, 56, 53, 56, 49, 64, 49, 64, 55, 72, 55, 72, 51, 80, 51),
        inputs=2,
    ),
    "shaft": [*line(10, 37, 44, 37), *line(10, 43, 44, 43), *box(44, 14, 22, 52), *line(66, 37, 104, 37),
              *line(66, 43, 104, 43), *text(55, 40, "J", 15), *path("M 88 22 a 9 18 0 0 1 0 36"),
              *arrow(90.5, 55, 86, 60), *text(102, 22, "ω", 13)],
}  # fmt: skip
"""Blocks by their types."""

SIGNALS: dict[str, Strokes] = {
    "steps": _axes(*line(14, 58, 38, 58, 38, 24, 66, 24, 66, 42, 100, 42)),
    "linear": _axes(*line(14, 54, 34, 54, 58, 20, 80, 36, 100, 36), *dot(34, 54), *dot(58, 20), *dot(80, 36)),
    "sine": _axes(*path("M 14 40 C 22 8 30 8 38 40 S 54 72 62 40 S 78 8 86 40 S 98 60 102 56")),
    "rest-to-rest": _axes(*path("M 14 58 H 30 C 54 58 52 22 78 22 H 102"), *dot(30, 58), *dot(78, 22)),
    "spline": _axes(*path("M 20 52 C 30 20 40 20 48 36 S 66 62 76 40 S 92 20 100 24"), *dot(20, 52), *dot(48, 36),
                    *dot(76, 40), *dot(100, 24)),
    "polynomial": _axes(*path("M 14 60 C 40 60 70 50 100 14"), *text(52, 26, "Σ c tⁿ", 12)),
}  # fmt: skip
"""Signals by their types."""
