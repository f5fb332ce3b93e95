"""Strokes of symbols as SVG: a field of 120 by 80, x to the right and y down, drawn in the colour of the text."""

from __future__ import annotations

from html import escape
from math import cos, hypot, pi, radians, sin

WIDTH, HEIGHT = 120, 80
_HEAD, _HALF = 8.0, 3.2
"""Length and half the width of the head of an arrow."""

Strokes = list[str]
"""What a symbol is made of: elements of SVG."""


def symbol(strokes: Strokes, label: str) -> str:
    """Return a picture that says in words what it shows."""
    return (
        f'<svg class="symbol" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(label)}"><g fill="none" stroke="currentColor" stroke-width="1.8" '
        f'stroke-linecap="round" stroke-linejoin="round">{"".join(strokes)}</g></svg>'
    )


def line(*places: float, dashed: bool = False, thin: bool = False) -> Strokes:
    """Draw straight from place to place, x and y in turn."""
    points = " ".join(f"{x:g},{y:g}" for x, y in _pairs(places))
    style = (' stroke-dasharray="4 3"' if dashed else "") + (' stroke-width="1.1"' if dashed or thin else "")
    return [f'<polyline points="{points}"{style}/>']


def area(*places: float) -> Strokes:
    """Fill what lies between places."""
    points = " ".join(f"{x:g},{y:g}" for x, y in _pairs(places))
    return [f'<polygon points="{points}" fill="currentColor"/>']


def box(x: float, y: float, width: float, height: float, *, filled: bool = False, round: float = 0.0) -> Strokes:  # noqa: A002
    """Draw a rectangle from its upper left corner."""
    fill = ' fill="currentColor"' if filled else ""
    return [f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round:g}"{fill}/>']


def ring(x: float, y: float, radius: float) -> Strokes:
    """Draw a circle."""
    return [f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}"/>']


def dot(x: float, y: float, radius: float = 2.6) -> Strokes:
    """Fill a circle."""
    return [f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="currentColor"/>']


def path(data: str, *, thin: bool = False, dashed: bool = False) -> Strokes:
    """Draw a path as SVG writes it."""
    style = (' stroke-dasharray="4 3"' if dashed else "") + (' stroke-width="1.1"' if dashed or thin else "")
    return [f'<path d="{data}"{style}/>']


def arrow(x: float, y: float, to_x: float, to_y: float) -> Strokes:
    """Draw an arrow."""
    return [*line(x, y, to_x, to_y), *_head(to_x, to_y, to_x - x, to_y - y)]


def arc(x: float, y: float, radius: float, start: float, end: float, *, headed: bool = False) -> Strokes:
    """Draw a part of a circle, angles in degrees from the right, counter-clockwise to whom looks at it."""
    (a, b), (c, d) = ((x + radius * cos(radians(each)), y - radius * sin(radians(each))) for each in (start, end))
    large, sweep = int(abs(end - start) > 180), int(end < start)
    drawn = path(f"M {a:.2f} {b:.2f} A {radius:g} {radius:g} 0 {large} {sweep} {c:.2f} {d:.2f}")
    turn = 1.0 if end > start else -1.0
    back = radians(end - turn * 90.0 * _HEAD / (pi / 2.0 * radius) / 2.0)
    return [*drawn, *(_head(c, d, -turn * sin(back), -turn * cos(back)) if headed else [])]


def spring(x: float, y: float, to_x: float, to_y: float, half: float = 5.0, turns: int = 4) -> Strokes:
    """Draw a spring."""
    length = hypot(to_x - x, to_y - y)
    ex, ey = (to_x - x) / length, (to_y - y) / length
    shares = [0.0, 0.12, *(0.12 + 0.76 * (index + 0.5) / (2 * turns) for index in range(2 * turns)), 0.88, 1.0]
    asides = [0.0, 0.0, *(half if index % 2 else -half for index in range(2 * turns)), 0.0, 0.0]
    places = [
        value
        for share, aside in zip(shares, asides, strict=True)
        for value in (x + share * length * ex - aside * ey, y + share * length * ey + aside * ex)
    ]
    return line(*(round(each, 2) for each in places))


def damper(x: float, y: float, to_x: float, half: float = 6.0) -> Strokes:
    """Draw a dashpot that lies."""
    middle = (x + to_x) / 2.0
    cup = line(middle + 9, y - half, middle - 7, y - half, middle - 7, y + half, middle + 9, y + half)
    return [*line(x, y, middle - 7, y), *cup, *line(middle + 2, y - half + 2, middle + 2, y + half - 2),
            *line(middle + 2, y, to_x, y)]  # fmt: skip


def ground(x: float, y: float, width: float) -> Strokes:
    """Draw what does not move, from its left end, hatched below."""
    hatches = [stroke for at in range(4, int(width) + 1, 7) for stroke in line(x + at, y, x + at - 5, y + 6, thin=True)]
    return [*line(x, y, x + width, y), *hatches]


def wall(x: float, y: float, height: float, side: float = -1.0) -> Strokes:
    """Draw what does not move, upright from its upper end, hatched to the left, or to the right with a side of 1."""
    hatches = [
        stroke for at in range(4, int(height) + 1, 7) for stroke in line(x, y + at - 4, x + side * 6, y + at, thin=True)
    ]
    return [*line(x, y, x, y + height), *hatches]


def text(x: float, y: float, words: str, size: float = 13.0) -> Strokes:
    """Write words about a place."""
    return [
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="middle" dominant-baseline="central" '
        f'fill="currentColor" stroke="none" font-family="sans-serif">{escape(words)}</text>'
    ]


def centre(x: float, y: float, radius: float = 7.0) -> Strokes:
    """Draw a centre of mass: a circle with two quarters filled."""
    quarters = "".join(
        f'<path d="M {x:g} {y:g} h {sign * radius:g} A {radius:g} {radius:g} 0 0 0 {x:g} {y - sign * radius:g} Z" '
        'fill="currentColor"/>'
        for sign in (1, -1)
    )
    return [*ring(x, y, radius), quarters]


def _pairs(places: tuple[float, ...]) -> list[tuple[float, ...]]:
    return list(zip(places[::2], places[1::2], strict=True))


def _head(x: float, y: float, dx: float, dy: float) -> Strokes:
    """Draw the head of an arrow that comes along a direction."""
    length = hypot(dx, dy)
    ex, ey = dx / length, dy / length
    corners = [(x, y)] + [
        (x - _HEAD * ex - side * _HALF * ey, y - _HEAD * ey + side * _HALF * ex) for side in (1.0, -1.0)
    ]
    return area(*(round(each, 2) for corner in corners for each in corner))
