"""Symbols of bodies, joints, forces, couplings and sensors, after the kinematic diagrams of ISO 3952."""

from __future__ import annotations

from pictures.drawing import Strokes, arc, area, arrow, box, centre, damper, dot, ground, line, path, ring, spring, text
from pictures.drawing import wall as upright

_FOOT = [*line(60, 48, 46, 66), *line(60, 48, 74, 66), *ground(40, 66, 40)]
_HINGE = [*_FOOT, *ring(60, 44, 5)]
_LINK = line(64.5, 41, 108, 18)
_SLIDE = [*ground(24, 56, 72), *box(44, 36, 32, 20), *line(76, 46, 104, 46)]
_BLOB = path("M 34 52 C 14 34 32 8 60 14 C 92 6 112 32 94 54 C 82 72 52 70 34 52 Z")
_EYE = [*path("M 8 66 Q 20 54 32 66 Q 20 78 8 66 Z"), *dot(20, 66, 3)]
_PAIR = [*ring(44, 40, 22), *ring(86, 40, 20), *dot(44, 40), *dot(86, 40)]

BODIES: dict[str, Strokes] = {
    "rigid": [*_BLOB, *centre(62, 38), *dot(38, 46), *dot(86, 28), *arrow(38, 46, 56, 58), *arrow(38, 46, 30, 26)],
    "beam": [*path("M 16 44 L 104 26 M 19 54 L 107 36"), *path("M 16 44 A 5 5 0 0 0 19 54 M 104 26 A 5 5 0 0 1 107 36"),
             *centre(61.5, 40, 5.5), *dot(18, 49, 2), *dot(105, 31, 2), *text(60, 64, "L", 13)],
    "cuboid": [*box(32, 28, 38, 38), *line(32, 28, 48, 14, 86, 14, 70, 28), *line(86, 14, 86, 52, 70, 66),
               *centre(51, 47, 6)],
}  # fmt: skip
"""Bodies by their types."""

JOINTS: dict[str, Strokes] = {
    "revolute": [*_HINGE, *_LINK, *arc(60, 44, 26, -12, 80, headed=True)],
    "prismatic": [*_SLIDE, *arrow(46, 26, 78, 26)],
    "cylindrical": [*line(8, 40, 34, 40), *line(86, 40, 112, 40), *box(34, 29, 52, 22),
                    *line(34, 40, 86, 40, dashed=True), *arrow(44, 20, 78, 20),
                    *arc(102, 40, 13, -70, 70, headed=True)],
    "universal": [*line(6, 40, 34, 40), *line(34, 22, 34, 58), *line(34, 22, 56, 22), *line(34, 58, 56, 58),
                  *line(56, 22, 56, 58), *line(44, 40, 86, 40), *line(86, 40, 112, 40), *line(86, 30, 86, 50),
                  *line(86, 30, 44, 30), *line(86, 50, 44, 50), *line(44, 30, 44, 50), *dot(56, 40)],
    "planar": [*path("M 10 62 L 84 62 L 110 40 L 36 40 Z"), *box(46, 30, 26, 20), *arrow(72, 46, 96, 46),
               *arrow(52, 50, 38, 60), *arc(59, 26, 14, 20, 160, headed=True)],
    "spherical": [*ring(60, 42, 12), *arc(60, 42, 18, 130, 410), *line(68.5, 33.5, 100, 10), *line(60, 60, 60, 66),
                  *ground(40, 66, 40)],
    "free": [*path("M 54 40 C 46 30 56 16 72 20 C 92 16 102 32 92 42 C 84 52 62 50 54 40 Z"), *arrow(16, 66, 44, 66),
             *arrow(16, 66, 16, 38), *arrow(16, 66, 34, 54), *line(16, 66, 70, 34, dashed=True), *dot(70, 34)],
    "fixed": [*ground(30, 62, 60), *line(60, 62, 60, 14), *area(60, 50, 48, 62, 72, 62)],
    "point-on-line": [*ground(12, 62, 96), *line(12, 50, 108, 50), *dot(52, 50, 4), *line(52, 50, 88, 14),
                      *arrow(60, 40, 96, 40), *arc(52, 50, 24, 60, 150, headed=True)],
    "point-on-plane": [*path("M 10 66 L 84 66 L 110 44 L 36 44 Z"), *dot(58, 55, 4), *line(58, 55, 84, 14),
                       *arrow(62, 55, 92, 55), *arrow(54, 57, 42, 64)],
    "distance": [*ground(8, 66, 36), *ring(26, 56, 5), *line(30, 53, 90, 23), *ring(94, 21, 5),
                 *line(99, 19, 114, 11), *line(26, 40, 86, 10, thin=True), *text(48, 18, "l", 13)],
}  # fmt: skip
"""Joints by their types."""

FORCES: dict[str, Strokes] = {
    "applied-force": [*_BLOB, *dot(66, 42), *arrow(108, 4, 68, 40), *text(88, 8, "F", 14)],
    "applied-moment": [*_BLOB, *dot(62, 40), *arc(62, 40, 17, -60, 210, headed=True), *text(110, 14, "M", 14)],
    "actuator": [*dot(12, 62), *dot(108, 18), *line(12, 62, 52, 43.5), *line(68, 36, 108, 18),
                 *path("M 34 42.6 L 66 27.8 L 72 40 L 40 54.8 Z"), *arrow(80, 50, 104, 39), *arrow(46, 66, 22, 77),
                 *text(96, 56, "F", 13)],
    "joint-drive": [*_HINGE, *_LINK, *arc(60, 44, 30, -20, 70, headed=True), *text(98, 56, "τ", 15)],
    "joint-actuator": [*_FOOT, *ring(60, 40, 12), *text(60, 40, "M", 12), *line(71, 34, 108, 14),
                       *arc(60, 40, 30, -30, 60, headed=True), *text(100, 58, "φ, ω", 12)],
    "spring-damper": [*dot(12, 40), *dot(108, 40), *line(12, 40, 26, 40), *line(94, 40, 108, 40), *line(26, 24, 26, 56),
                      *line(94, 24, 94, 56), *spring(26, 24, 94, 24), *damper(26, 56, 94)],
    "joint-spring-damper": [*_HINGE, *_LINK,
                            *path("M 60 44 m 7 0 a 7 7 0 1 0 -7 7 a 12 12 0 1 0 -12 -12 a 16 16 0 0 0 16 16 h 8"),
                            *text(96, 50, "k, d", 13)],
    "bushing": [*ring(60, 40, 28), *ring(60, 40, 10), *spring(70, 40, 88, 40, 4, 2), *spring(50, 40, 32, 40, 4, 2),
                *spring(60, 30, 60, 12, 4, 2), *spring(60, 50, 60, 68, 4, 2)],
    "plane-contact": [*ground(16, 62, 88), *ring(60, 46, 18), *arrow(60, 62, 60, 12), *text(72, 18, "N", 12),
                      *arrow(60, 62, 36, 62)],
    "joint-friction": [*_SLIDE, *arrow(72, 62, 40, 62), *arrow(46, 26, 78, 26), *text(90, 26, "v", 13)],
    "joint-stop": [*ground(14, 58, 92), *box(40, 40, 26, 18), *upright(14, 34, 24), *upright(106, 34, 24, 1.0),
                   *spring(106, 49, 82, 49, 4, 3), *arrow(44, 28, 72, 28)],
}  # fmt: skip
"""Forces by their types."""

CONSTRAINTS: dict[str, Strokes] = {
    "gear": [*_PAIR, *line(66, 34, 66, 46), *arc(44, 40, 14, 130, 30, headed=True),
             *arc(86, 40, 12, 50, 150, headed=True)],
    "rack-and-pinion": [*ring(56, 30, 20), *dot(56, 30), *line(14, 54, 106, 54),
                        *path("M 14 54 l 4 -4 l 4 4 " + "l 4 -4 l 4 4 " * 10), *arc(56, 30, 12, 150, 20, headed=True),
                        *arrow(40, 66, 76, 66), *text(90, 66, "x", 13)],
    "mimic": [*ring(26, 52, 5), *line(30, 49, 52, 22), *ring(78, 52, 5), *line(82, 49, 108, 36),
              *line(54, 24, 104, 30, dashed=True), *arrow(84, 28, 100, 31), *ground(14, 62, 92)],
    "differential": [*line(8, 40, 42, 40), *line(78, 40, 112, 40), *line(42, 26, 42, 54), *line(78, 26, 78, 54),
                     *line(46, 22, 74, 22), *line(46, 58, 74, 58), *line(60, 22, 60, 58),
                     *box(32, 12, 56, 56, round=4)],
    "linear-coupling": [*box(44, 22, 32, 36), *text(60, 40, "Σ a q", 12), *line(14, 30, 44, 30), *line(14, 50, 44, 50),
                        *line(76, 40, 106, 40), *dot(14, 30), *dot(14, 50), *dot(106, 40)],
    "prescribed-motion": [*_SLIDE, *arrow(46, 28, 78, 28), *path("M 82 18 C 90 18 92 4 102 4", thin=True),
                          *line(82, 22, 106, 22, thin=True), *line(82, 22, 82, 2, thin=True),
                          *text(60, 14, "s(t)", 12)],
}  # fmt: skip
"""Constraints between joints by their types."""

SENSORS: dict[str, Strokes] = {
    "point-sensor": [*_EYE, *dot(86, 22), *line(32, 62, 82, 26, dashed=True), *arrow(86, 22, 110, 12),
                     *text(90, 40, "r, v, a", 12)],
    "orientation-sensor": [*_EYE, *box(66, 14, 30, 30), *line(32, 62, 64, 42, dashed=True), *arrow(81, 29, 106, 20),
                           *arrow(81, 29, 74, 6), *text(82, 60, "q, ω", 12)],
    "distance-sensor": [*dot(16, 34), *dot(104, 34), *line(16, 34, 104, 34, dashed=True), *line(16, 42, 16, 58),
                        *line(104, 42, 104, 58), *arrow(60, 52, 17, 52), *arrow(60, 52, 103, 52),
                        *text(60, 20, "s, ṡ", 13)],
    "joint-sensor": [*_HINGE, *_LINK, *line(65, 44, 108, 44, dashed=True), *arc(60, 44, 32, 0, 24, headed=True),
                     *text(104, 60, "q, q̇", 12)],
}  # fmt: skip
"""Sensors by their types."""
