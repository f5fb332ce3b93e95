"""Base of algorithms that couple mechanisms by joints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.explicit_coupling import OneSweep
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.sweeps import Settings
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.joints.bound_joints import BoundJoint

Advance = Callable[[Sequence[CoupledInstance]], None]
"""Steps members with the polynomials of a step."""


class JointAlgorithm(OneSweep):
    """Base of algorithms with joints, whose FMUs step together.

    All other connections are those of `jacobi`, or of `gauss-seidel`, where the FMUs of joints take one turn together.

    Parameters
    ----------
    exchange, settings
        As for `Algorithm`.
    joints
        The joints.

    Attributes
    ----------
    joints
        The joints.
    together
        The members that they join.
    """

    CHANGES = (*OneSweep.CHANGES, "reactions")

    def __init__(self, exchange: CouplingData, settings: Settings, joints: Sequence[BoundJoint]) -> None:
        super().__init__(exchange, settings)
        self.joints = joints
        names = {handle.instance.name for joint in joints for handle in joint.handles}
        self.together = [member for member in exchange.members if member.instance.name in names]
        self.reactions = np.zeros(6 * len(joints))
        self.in_turn = settings.algorithm == "gauss-seidel"
        self._groups = self._turns_of_groups() if self.in_turn else None

    def _turns_of_groups(self) -> list[list[CoupledInstance]]:
        """Return the members that step together, turn after turn."""
        groups = list[list[CoupledInstance]]()
        for member, _ in self.turns:
            if member not in self.together:
                groups.append([member])
            elif self.together not in groups:
                groups.append(self.together)
        return groups

    def history(self) -> OutputHistory:
        """Return a history that starts with the present outputs, at closed joints."""
        for joint in self.joints:
            joint.begin()
        return super().history()

    def _one_sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        given, polynomials = polynomials, np.zeros((self.exchange.rows, len(self.exchange.columns)))
        polynomials[: len(given)] = given

        advance = self._advancing(polynomials, history.correction, time, step)
        if self._groups is None:
            advance([member for member in self.exchange.members if member not in self.together])
            self._step_together(polynomials, advance, history.correction, time, step)
            return self.exchange.read()
        for members in self._groups:
            if members is self.together:
                self._step_together(polynomials, advance, history.correction, time, step)
            else:
                self.sweeps += 1
                advance(members)
            for member in members:
                found = history.interpolate(step, member.outputs.read(), member.place)
                polynomials[: len(found), member.place] = found
        return self.exchange.outputs

    def _advancing(self, polynomials: Floats, correction: Floats | None, time: float, step: float) -> Advance:
        """Return what steps members with polynomials; the arguments are those of `_step_together`."""

        def advance(members: Sequence[CoupledInstance]) -> None:
            self._advance_all(members, polynomials, time, step, correction)

        return advance

    @abstractmethod
    def _step_together(
        self, polynomials: Floats, advance: Advance, correction: Floats | None, time: float, step: float
    ) -> None:
        """Step the members that joints join.

        Parameters
        ----------
        polynomials
            Of all columns.
        advance
            Steps members with them.
        correction
            What is added to the integral of each entry over the step; None for nothing.
        time, step
            Beginning and length of the communication step in s.
        """
