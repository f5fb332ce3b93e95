"""Symbols of components of circuits, after ISO 1219-1: filled triangles are oil under way."""

from __future__ import annotations

from pictures.drawing import Strokes, arc, area, arrow, box, dot, line, path, ring, spring, text

_SHAFT = [*line(80, 37, 100, 37), *line(80, 43, 100, 43)]
_PUMP = [*ring(60, 40, 20), *area(60, 20, 54, 29, 66, 29), *line(60, 20, 60, 4), *line(60, 60, 60, 76), *_SHAFT]
_MOTOR = [*ring(60, 40, 20), *area(60, 30, 54, 21, 66, 21), *area(60, 50, 54, 59, 66, 59)]
_MOTOR += [*line(60, 20, 60, 4), *line(60, 60, 60, 76), *_SHAFT]
_VARIABLE = arrow(40, 60, 84, 16)
_ORIFICE = [*line(8, 40, 112, 40), *path("M 50 26 L 60 36 L 70 26"), *path("M 50 54 L 60 44 L 70 54")]
_ALONG = line(8, 40, 112, 40)


def _check(x: float, y: float, *, spring_behind: bool = True) -> Strokes:
    """Draw a ball on its seat, which opens to the right, with its centre at a place."""
    seat = [*line(x - 2, y - 13, x - 13, y, x - 2, y + 13)]
    return [*ring(x, y, 7), *seat, *(spring(x + 7, y, x + 27, y, 4, 3) if spring_behind else [])]


def _square(*, opening: bool, remote: bool = False) -> Strokes:
    """Draw a valve that a spring holds against a pressure: closed, its arrow beside the line, or open."""
    x = 60 if opening else 53
    drawn = [*box(44, 24, 32, 32), *arrow(x, 56, x, 25), *line(60, 24, 60, 6), *line(60, 56, 60, 74)]
    drawn += [*spring(76, 40, 104, 40, 5, 3), *arrow(82, 54, 96, 27)]
    piloted = line(60, 14, 30, 14, 30, 40, 44, 40, dashed=True) if opening else line(60, 66, 30, 66, 30, 40, 44, 40,
                                                                                     dashed=True)  # fmt: skip
    return [*drawn, *piloted, *(line(10, 40, 44, 40, dashed=True) if remote else [])]


def _spool(*, proportional: bool) -> Strokes:
    """Draw a 4/3 valve: crossed, closed and straight."""
    drawn = [stroke for x in (24, 48, 72) for stroke in box(x, 26, 24, 28)]
    drawn += [*arrow(30, 54, 30, 26), *arrow(42, 26, 42, 54), *arrow(78, 54, 90, 27), *arrow(78, 26, 90, 53)]
    for x in (54, 66):
        drawn += [*line(x, 26, x, 33), *line(x - 3, 33, x + 3, 33), *line(x, 54, x, 47), *line(x - 3, 47, x + 3, 47)]
        drawn += [*line(x, 26, x, 10), *line(x, 54, x, 70)]
    drawn += [*spring(24, 46, 8, 46, 4, 3), *spring(96, 46, 112, 46, 4, 3)]
    drawn += [*box(8, 28, 16, 11), *line(12, 39, 20, 28), *box(96, 28, 16, 11), *line(108, 39, 100, 28)]
    ends = [*text(49, 8, "A", 9), *text(71, 8, "B", 9), *text(49, 74, "P", 9), *text(71, 74, "T", 9)]
    between = [*line(24, 22, 96, 22), *line(24, 58, 96, 58)] if proportional else []
    return [*drawn, *ends, *between]


_CYLINDER = [*box(12, 26, 72, 24), *box(42, 26, 7, 24, filled=True), *line(49, 36, 112, 36), *line(49, 40, 112, 40)]
_CYLINDER += [*line(112, 36, 112, 40), *line(18, 50, 18, 72), *line(78, 50, 78, 72)]

COMPONENTS: dict[str, Strokes] = {
    # -- volumes, lines, sources ----------------------------------------------------------------------------
    "hose": [*dot(14, 30), *dot(106, 30), *path("M 14 30 C 34 74 86 74 106 30")],
    "volume": [*box(30, 20, 60, 40, round=10), *line(8, 40, 30, 40), *text(60, 40, "V", 16)],
    "accumulator": [
        *path("M 44 30 A 16 16 0 0 1 76 30 V 48 A 16 16 0 0 1 44 48 Z"), *line(44, 39, 76, 39),
        *path("M 60 19 L 55 28 L 65 28 Z"), *line(60, 64, 60, 76),
    ],
    "line": [*_ALONG, *box(28, 30, 64, 20), *arrow(44, 40, 76, 40), *text(60, 22, "ρ l / A", 11)],
    "transmission-line": [*_ALONG, *box(24, 28, 72, 24), *path("M 32 40 Q 41 24 50 40 T 68 40 T 86 40"),
                          *text(60, 18, "l / c", 12)],
    "line-end": [*line(8, 40, 40, 40), *line(100, 28, 40, 28, 40, 52, 100, 52),
                 *path("M 46 40 Q 55 24 64 40 T 82 40 T 100 40"), *line(106, 22, 100, 34, 106, 46, 100, 58)],
    "pressure-source": [*area(60, 24, 46, 48, 74, 48), *line(60, 24, 60, 6), *text(60, 62, "p", 14)],
    "tank": [*line(36, 44, 36, 66, 84, 66, 84, 44), *line(60, 6, 60, 58)],
    "flow-source": [*ring(60, 46, 18), *line(60, 28, 60, 6), *arrow(60, 58, 60, 34), *arrow(14, 46, 41, 46),
                    *text(26, 36, "Q", 12)],
    "pressure-input": [*area(60, 26, 46, 50, 74, 50), *line(60, 26, 60, 6), *arrow(14, 58, 46, 44),
                       *text(24, 42, "p", 13)],
    "pressure-sensor": [*ring(60, 30, 17), *line(60, 47, 60, 74), *arrow(53, 39, 68, 20), *text(88, 30, "p", 14)],
    "flow-sensor": [*_ALONG, *ring(60, 40, 17), *arc(60, 66, 24, 62, 118), *arc(60, 14, 24, -62, -118),
                    *text(60, 12, "Q", 13)],
    # -- restrictions ---------------------------------------------------------------------------------------
    "throttle": _ORIFICE,
    "variable-orifice": [*_ORIFICE, *arrow(42, 64, 80, 14)],
    "capillary": [*_ALONG, *path("M 34 28 Q 40 34 46 34 H 74 Q 80 34 86 28"),
                  *path("M 34 52 Q 40 46 46 46 H 74 Q 80 46 86 52")],
    "annular-gap": [*line(14, 14, 106, 14), *line(14, 66, 106, 66), *box(38, 28, 46, 24),
                    *arrow(24, 21, 98, 21), *arrow(24, 59, 98, 59), *line(84, 40, 112, 40)],
    # -- poppets --------------------------------------------------------------------------------------------
    "check-valve": [*line(8, 40, 37, 40), *_check(50, 40), *line(77, 40, 112, 40)],
    "pilot-check-valve": [
        *line(8, 40, 37, 40), *_check(50, 40), *line(77, 40, 112, 40),
        *line(92, 74, 24, 74, 24, 52, 37, 46, dashed=True), *text(102, 72, "X", 10),
    ],
    "shuttle-valve": [
        *box(26, 28, 68, 26, round=3), *ring(46, 41, 8), *line(8, 41, 26, 41), *line(94, 41, 112, 41),
        *line(34, 33, 40, 36), *line(34, 49, 40, 46), *line(86, 33, 80, 36), *line(86, 49, 80, 46),
        *line(60, 28, 60, 6),
    ],
    "relief-valve": _square(opening=False),
    "reducing-valve": _square(opening=True),
    "counterbalance-valve": [
        *box(20, 28, 28, 28), *arrow(28, 56, 28, 29), *line(34, 28, 34, 8), *line(34, 56, 34, 74),
        *spring(48, 42, 68, 42, 4, 3), *line(34, 66, 10, 66, 10, 46, 20, 46, dashed=True),
        *line(4, 36, 20, 36, dashed=True), *line(34, 14, 90, 14, 90, 32), *line(90, 53, 90, 68, 34, 68),
        *ring(90, 40, 6.5), *line(78, 42, 90, 53, 102, 42),
    ],
    # -- spools ---------------------------------------------------------------------------------------------
    "directional-valve": _spool(proportional=False),
    "proportional-valve": _spool(proportional=True),
    # -- pumps and motors -----------------------------------------------------------------------------------
    "pump": _PUMP,
    "variable-pump": [*_PUMP, *area(60, 60, 54, 51, 66, 51), *_VARIABLE],
    "compensated-pump": [*_PUMP, *_VARIABLE, *line(60, 12, 22, 12, 22, 52, 34, 52, dashed=True),
                         *spring(40, 66, 22, 66, 4, 3), *line(40, 60, 40, 68)],
    "load-sensing-pump": [
        *_PUMP, *_VARIABLE, *line(60, 12, 22, 12, 22, 52, 34, 52, dashed=True),
        *line(8, 66, 40, 66, dashed=True), *line(40, 60, 40, 68), *text(16, 57, "LS", 10),
    ],
    "motor": [*_MOTOR, *arc(96, 40, 12, -60, 60, headed=True)],
    "inertial-motor": [*_MOTOR, *box(100, 22, 9, 36, filled=True)],
    # -- cylinders ------------------------------------------------------------------------------------------
    "cylinder": _CYLINDER,
    "single-acting-cylinder": [
        *box(12, 26, 72, 24), *box(38, 26, 7, 24, filled=True), *line(45, 36, 112, 36), *line(45, 40, 112, 40),
        *line(112, 36, 112, 40), *line(18, 50, 18, 72), *spring(46, 45, 83, 45, 3.5, 5), *line(74, 26, 74, 18),
    ],
}  # fmt: skip
"""Components by their types."""
