"""Communication steps of all members, shared by fixed and controlled runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.coupling.bond_energy import PowerBond
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.sweeps import Algorithm
from mbsfmu.cosim.fmus.fmu_instance import Floats


class CommunicationPoint(NamedTuple):
    """Data recorded at a communication point.

    Attributes
    ----------
    time, outputs
        Time in s and all outputs.
    energies
        For each bond, what the taker got and the giver gave in the step to this point, in J.
    reactions
        Those of joints; see `Algorithm`.
    """

    time: float
    outputs: Floats
    energies: list[tuple[float, float]]
    reactions: Floats


MakeOne = Callable[[OutputHistory, float, float], bool]
"""Makes a step in s from a time in s, as `Algorithm.step` does, and returns whether it has: else Python makes it."""


class Stepping:
    """An algorithm with its power bonds.

    Parameters
    ----------
    algorithm
        The algorithm, with its members.
    bonds
        The power bonds.

    Attributes
    ----------
    shows_inputs
        Of each output, whether it shows at the end of a step what the inputs that it depends on directly are off by
        there. Where steps are iterated, that is nothing for FMUs that interpolate.
    compiled
        What makes single steps in compiled code; None without.
    """

    def __init__(self, algorithm: Algorithm, bonds: Sequence[PowerBond]) -> None:
        self.algorithm = algorithm
        self.exchange = algorithm.exchange
        self.bonds = bonds
        self.compiled: MakeOne | None = None
        members = [self.exchange.member(name) for name, _ in self.exchange.names]
        corrected = algorithm.settings.linear_correction
        self.shows_inputs = np.array(
            [
                variable in member.direct
                and not corrected
                and not (algorithm.iterates and member.instance.interpolates)
                for member, (_, variable) in zip(members, self.exchange.names, strict=True)
            ],
            dtype=bool,
        )

    @property
    def order(self) -> int:
        """Order of the coupling."""
        return self.algorithm.order

    @property
    def degree(self) -> int:
        """Degree of the polynomials that extrapolate."""
        return self.algorithm.settings.extrapolation.degree

    def advance(self, history: OutputHistory, time: float, step: float) -> CommunicationPoint:
        """Make a step in s; its end is added to the history.

        Raises
        ------
        SimulationError
            When an FMU refuses, an iteration does not converge or an output is not finite.
        """
        before = history.now
        if self.compiled is None or not self.compiled(history, time, step):
            self.algorithm.step(history, time, step)
        after = history.now
        self.check(after, time + step)
        energies = [bond.exchanged(before, after, step) for bond in self.bonds]
        return CommunicationPoint(time + step, after, energies, self.algorithm.reactions)

    def check(self, outputs: Floats, time: float) -> None:
        """Check that outputs at a time in s are finite.

        Raises
        ------
        SimulationError
            When one is not finite.
        """
        finite = np.isfinite(outputs)
        if not np.logical_and.reduce(finite):
            instance, variable = self.exchange.names[int(np.argmin(finite))]
            raise SimulationError(f"{instance}.{variable} is not finite at t = {time:.9g} s: the run diverges")

    def save(self, slot: str, time: float) -> None:
        """Save the states of all members at a time in s under a name."""
        self.exchange.save(slot, time)

    def restore(self, slot: str) -> None:
        """Restore all members."""
        self.algorithm.rollbacks += 1
        self.exchange.restore(slot)
