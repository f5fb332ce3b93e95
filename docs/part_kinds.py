"""The kinds of parts that have entries, and where these are."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, get_args

from mbsfmu.io.signals import AnySignal
from mbsfmu.model.body import AnyBody
from mbsfmu.modelling.data import Data
from mbsfmu.modelling.part import FAMILIES, is_built_in

TITLES = {"component": "Components of circuits", "body": "Bodies", "joint": "Joints", "force": "Forces"}
TITLES |= {"constraint": "Constraints between joints", "sensor": "Sensors", "block": "Blocks", "signal": "Signals"}
PAGES = {"component": "reference/hydraulics", "block": "reference/blocks", "signal": "reference/blocks"}
"""The page on each family; the others are in reference/mechanics.md."""


class Kind(NamedTuple):
    """A kind of parts.

    Attributes
    ----------
    family
        What such a part is called.
    word
        The word that data call it by.
    made
        Its class.
    """

    family: str
    word: str
    made: type[Data]

    @property
    def page(self) -> str:
        """The page that it has its entry on."""
        return PAGES.get(self.family, "reference/mechanics")

    @property
    def place(self) -> str:
        """Where its entry begins on the page."""
        return f"part-{self.family}-{self.word}"


@cache
def kinds() -> tuple[Kind, ...]:
    """Return all kinds that are built in, by family."""
    found = [
        Kind(family.family, word, made) for family in FAMILIES for word, made in family.known() if is_built_in(made)
    ]
    for family, union in (("body", AnyBody), ("signal", AnySignal)):
        found += [Kind(family, made.model_fields["type"].default, made) for made in get_args(get_args(union)[0])]
    return tuple(sorted(found, key=lambda kind: list(TITLES).index(kind.family)))


def named_in(heading: str, page: str) -> list[Kind]:
    """Return the kinds that a heading of a page names, by word or class."""
    names = re.findall(r"`([\w-]+)`", heading)
    return [kind for name in names for kind in kinds() if kind.page == page and name in (kind.word, kind.made.__name__)]
