"""Joints between numbered bodies, for the tests of the divide-and-conquer assembly."""

from __future__ import annotations

from hypothesis import strategies as st

from mbsfmu.divide_and_conquer.binary_tree import GROUND, Link


def chain(bodies: int, *, closed: bool = False, rows: int = 5) -> list[Link]:
    """A chain that hangs on the ground, at its last body too where it is closed."""
    ends = [(body - 1, body) for body in range(bodies)]
    if closed:
        ends.append((GROUND, bodies - 1))
    return [Link(pair, tuple(range(rows * number, rows * number + rows))) for number, pair in enumerate(ends)]


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> tuple[int, list[Link]]:
    """A number of bodies, their joints, a spanning tree, outwards, and joints that close loops; constraints of more."""
    bodies = draw(st.integers(1, most))
    ends: list[tuple[int, ...]] = [(draw(st.integers(-1, body - 1)), body) for body in range(bodies)]
    for _ in range(draw(st.integers(0, 4))):
        pair = draw(st.tuples(st.integers(-1, bodies - 1), st.integers(-1, bodies - 1)))
        if pair[0] != pair[1]:
            ends.append(pair)
    several = st.sets(st.integers(0, bodies - 1), min_size=1, max_size=5)
    ends += draw(st.lists(several.map(tuple), max_size=2))
    links, first = [], 0
    for pair in ends:
        count = draw(st.integers(0, 6))
        links.append(Link(pair, tuple(range(first, first + count))))
        first += count
    return bodies, links
