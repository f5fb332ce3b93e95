"""Coupling algorithms: in which order instances step, and with which inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from mbsfmu.cosim.exchange import Exchange, Member
from mbsfmu.cosim.instance import Floats
from mbsfmu.errors import InputError


class Extrapolation(StrEnum):
    """How inputs are continued over a step from what is known at its beginning."""

    ZERO = "zero"
    LINEAR = "linear"


@dataclass
class History:
    """Outputs at the last two communication points.

    Attributes
    ----------
    now, before
        All outputs at the beginning of the step, and one step earlier; None in the first step.
    step_before
        Length of the last step in s.
    """

    now: Floats
    before: Floats | None = None
    step_before: float = 0.0

    def slope(self) -> Floats:
        """Return the rate of change over the last step; zero in the first one."""
        if self.before is None:
            return np.zeros_like(self.now)
        return (self.now - self.before) / self.step_before


class Algorithm(ABC):
    """Makes one communication step of all members.

    Parameters
    ----------
    extrapolation
        How inputs are continued.
    """

    def __init__(self, extrapolation: Extrapolation) -> None:
        self.extrapolation = extrapolation

    @abstractmethod
    def step(self, exchange: Exchange, history: History, time: float, step: float) -> Floats:
        """Advance all members and return all outputs at the end."""

    def _advance(self, member: Member, begin: Floats, slope: Floats, time: float, step: float) -> None:
        """Set inputs that begin at a value and go on with a slope, and step.

        An instance that interpolates gets the slope. One that holds its inputs gets their value at the middle
        of the step, which is as good as a straight line to second order. An output of such an instance that
        depends directly on the input still shows the value at the middle, and is first order: the standard does
        not allow to set the end value and read again without a step.
        """
        sources = member.source_of_entry
        if len(sources):
            member.applied = begin[sources] + 0.5 * step * slope[sources]
            if self.extrapolation is Extrapolation.LINEAR and member.instance.interpolates:
                member.entries.write(begin[sources])
                member.entries.write_derivatives(slope[sources])
            else:
                member.entries.write(member.applied)
        member.instance.step(time, step)


class Jacobi(Algorithm):
    """All members step with what is known at the beginning."""

    def step(self, exchange: Exchange, history: History, time: float, step: float) -> Floats:
        """Advance all members and return all outputs at the end."""
        linear = self.extrapolation is Extrapolation.LINEAR
        slope = history.slope() * exchange.continuous if linear else np.zeros_like(history.now)
        for member in exchange.members:
            self._advance(member, history.now, slope, time, step)
        return exchange.read()


class GaussSeidel(Algorithm):
    """Members step one after the other; later ones take the new outputs of earlier ones.

    With zero order a later member gets the end value, with linear extrapolation the straight line to it.

    Parameters
    ----------
    extrapolation
        How inputs are continued.
    order
        Names of all instances in the order in which they step.
    """

    def __init__(self, extrapolation: Extrapolation, order: Sequence[str]) -> None:
        super().__init__(extrapolation)
        self._order = order

    def step(self, exchange: Exchange, history: History, time: float, step: float) -> Floats:
        """Advance all members and return all outputs at the end."""
        linear = self.extrapolation is Extrapolation.LINEAR
        begin = history.now.copy()
        slope = history.slope() * exchange.continuous if linear else np.zeros_like(begin)
        end = history.now.copy()
        member_by_name = {member.instance.name: member for member in exchange.members}
        for name in self._order:
            member = member_by_name[name]
            self._advance(member, begin, slope, time, step)
            end[member.place] = member.outputs.read()
            straight = exchange.continuous[member.place] & linear
            slope[member.place] = np.where(straight, (end[member.place] - history.now[member.place]) / step, 0.0)
            begin[member.place] = np.where(straight, begin[member.place], end[member.place])
        return end


ALGORITHMS = ("jacobi", "gauss-seidel")


def make_algorithm(name: str, extrapolation: str, order: Sequence[str] | None, instances: Sequence[str]) -> Algorithm:
    """Make an algorithm by its name.

    Raises
    ------
    InputError
        When a name is unknown, or the order is none of all instances.
    """
    if name not in ALGORITHMS:
        raise InputError(f"there is no algorithm '{name}'; there are {', '.join(ALGORITHMS)}")
    if extrapolation not in list(Extrapolation):
        raise InputError(f"there is no extrapolation '{extrapolation}'; there are {', '.join(Extrapolation)}")
    chosen = list(order) if order is not None else list(instances)
    if sorted(chosen) != sorted(instances):
        raise InputError(f"the order is {', '.join(chosen)}; it must name each unit once: {', '.join(instances)}")
    if name == "jacobi":
        return Jacobi(Extrapolation(extrapolation))
    return GaussSeidel(Extrapolation(extrapolation), chosen)
