"""Sentences for the user: what units lack for the chosen algorithm, and what that does."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mbsfmu.cosim.coupling import names_of
from mbsfmu.cosim.exchange import Exchange, Member
from mbsfmu.cosim.extrapolation import Extrapolation
from mbsfmu.cosim.loops import is_loop, loop_names, sort_outputs
from mbsfmu.cosim.result import Facts

logger = logging.getLogger(__name__)

_GROWING = ", and may grow where inputs are extrapolated"


def tell_undriven(facts: Facts) -> None:
    """Tell which inputs nobody drives; a unit may have a signal of its own for them, so it need be no mistake."""
    if facts.undriven:
        told = names_of(facts.undriven)
        logger.info("nothing drives %s: each keeps its start value, or follows a signal inside its unit", told)


def tell_notes(facts: Facts, exchange: Exchange, iterates: bool, extrapolation: Extrapolation) -> None:
    """Tell the user what units lack for the chosen algorithm."""
    dependencies = {member.instance.name: member.instance.dependencies for member in exchange.members}
    known = {name: {variable: needed or () for variable, needed in each.items()} for name, each in dependencies.items()}
    if not iterates:
        for group in sort_outputs(exchange, known):
            if is_loop(exchange, group, known):
                facts.tell(
                    f"{loop_names(exchange, group)} make an algebraic loop: it was solved at the start, but goes "
                    f"round with the delay of a step{_GROWING if extrapolation.degree else ''}; fixed-point or newton "
                    "solve it in every step"
                )
    if extrapolation is Extrapolation.DERIVATIVES:
        missing = exchange.find_rates()
        if missing:
            facts.tell(f"{names_of(missing)} give no derivatives by time: slopes are taken from the last steps")
    if extrapolation is not Extrapolation.ZERO:
        holding = [member for member in exchange.members if len(member.sources) and not member.instance.interpolates]
        if holding:
            names = names_of([member.instance.name for member in holding])
            facts.notes.append(
                f"{names} cannot interpolate inputs, and holds their mean over each step{_order(holding)}"
            )
            logger.info("%s", facts.notes[-1])


def _order(holding: Sequence[Member]) -> str:
    """Return what it means that outputs of units which hold their inputs depend on them without delay."""
    direct = [f"{member.instance.name}.{name}" for member in holding for name in sorted(member.direct)]
    return f"; {names_of(direct)} shows the mean too, so the coupling is of first order" if direct else ""
