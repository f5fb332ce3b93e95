"""Coupling of mechanisms by joints, closed at each communication point.

The wrench of a joint runs straight over a communication step, from one value to another. Both are free: they close the
joint's position and its velocity at the end of the step, which are two equations for each constraint. So the wrench is
the best straight line through the true reaction: the difference has neither mean nor first moment over the step, in
what the FMUs integrate. Nothing of it depends on the wrench of the step before, so nothing rings, as multipliers of the
trapezoidal rule do where a joint is closed in position alone.

FMUs must tell the two values apart: they make two steps or more of their own in a communication step, for one step of
the trapezoidal rule gives position and velocity by the same mean. Therefore FMUs of joints are stepped twice in it,
where `rates` says nothing else. One that holds its inputs gets stairs with the same mean and first moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.sweeps import Settings, names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.joints.bound_joints import BoundJoint
from mbsfmu.cosim.joints.joint_algorithm import Advance, JointAlgorithm
from mbsfmu.cosim.joints.joint_trials import JointTrials

STEPS = 2
"""Steps of an FMU of a joint in a communication step, where `rates` says nothing else."""
ROWS = 2
"""Coefficients of the straight lines that wrenches run along."""
_REMEMBERED = 3
"""Steps from which the multipliers of the next one are extrapolated."""
_MOST_ITERATIONS = 25
_SLOW = 0.3  # an inverse that shrinks what is open by less than this is worth a new one
_RESPONSE = 1e-4
"""What perturbed multipliers shall move joints by, in m and rad: much beside round-off of the FMUs, little beside what
makes their motion nonlinear."""
_WORTH = 10.0
"""What is open by less than so many tolerances may be round-off, from which the inverse learns nothing."""
_GROWTH = 1e6  # of a perturbation in one try to meet the response
_TRIES = 4
_RANK = 1e-5
"""Singular values below this share of the largest one are of components without effect, or of redundant ones; those of
differences are exact to about 1e-6."""
_DISTINCT = 0.1
"""Share of the response in position that must differ from that of a mean velocity: 0.32 where FMUs integrate a wrench
exactly, 0.24 in two steps of the trapezoidal rule, in one of them what the motion turns in a step."""


class JointClosing(JointAlgorithm):
    """Closes joints at the end of each communication step by Newton's method on their multipliers.

    The Jacobian comes from differences of steps from saved states, once, and is kept by Broyden's update of its
    inverse. Redundant components get the least multipliers.

    Parameters
    ----------
    exchange, settings, joints
        As for `JointAlgorithm`.

    Attributes
    ----------
    jacobians
        Number of Jacobians by differences.
    """

    CHANGES = (
        *JointAlgorithm.CHANGES,
        "jacobians",
        "_lines",
        "_known",
        "_length",
        "_inverse",
        "_directions",
        "_moves",
        "_trials",
    )

    def __init__(self, exchange: CouplingData, settings: Settings, joints: Sequence[BoundJoint]) -> None:
        super().__init__(exchange, settings, joints)
        self._trials = trials = JointTrials(joints, exchange)
        sizes = [part.stop - part.start for part in trials.parts]
        self._limits = np.tile(np.repeat([joint.joint.tolerance for joint in joints], sizes), 2)
        self._is_moment = np.tile(np.concatenate([joint.equations.are_moments for joint in joints]), 2)
        self._lines = np.zeros((_REMEMBERED, 2, trials.count))  # of the last steps: multipliers at both ends
        self._known = 0  # number of last steps of one length
        self._length = 0.0  # of the last step in s
        self._inverse = np.zeros((0, 0))  # of the Jacobian over the square of the step
        self._directions = np.zeros((0, 2 * trials.count))  # of multipliers that have an effect
        self._moves = np.ones(2)  # perturbations of forces and moments
        self.jacobians = 0

    @property
    def order(self) -> int:
        """Order of the coupling error over a run: 2, or what other connections make of it."""
        return min(super().order, 2) if self.exchange.connections else 2

    def _step_together(
        self, polynomials: Floats, advance: Advance, correction: Floats | None, time: float, step: float
    ) -> None:
        del correction  # `advance` has it
        self._trials.begin(polynomials, advance, time, step)
        self._close(time, step)

    # -- closing --------------------------------------------------------------------------------------------

    def _close(self, time: float, step: float) -> None:
        """Find the multipliers that close the joints at the end of a step in s, and make the step.

        Raises
        ------
        SimulationError
            When there are none.
        """
        # Without what has no effect: directions of redundant components turn, and extrapolation makes them grow.
        multipliers = self._effective(self._predicted(step))
        residual = self._evaluate(multipliers)
        fresh, size, change = False, np.inf, np.zeros(residual.shape)
        for iteration in range(_MOST_ITERATIONS):
            before, size = size, float(np.max(np.abs(residual) / self._limits))
            if size <= 1.0:
                self._take(multipliers, step)
                return
            if not len(self._inverse) or (not fresh and iteration > 1 and not size < _SLOW * before):
                self._inverse, fresh = self._inverted(multipliers, step), True
            change = -(self._inverse @ residual)
            multipliers = multipliers + change.reshape(2, -1) / step**2
            turns = self._trials.follow()
            found = self._evaluate(multipliers)
            if not turns and size > _WORTH:
                self._update(change, found - residual)
            residual = found
        raise self._failure(residual, time)

    def _evaluate(self, multipliers: Floats) -> Floats:
        self.sweeps += 1
        return self._trials.evaluate(multipliers)

    def _take(self, multipliers: Floats, step: float) -> None:
        """Take the multipliers of an accepted step in s."""
        self._lines = np.concatenate([multipliers[np.newaxis], self._lines[:-1]])
        self._known = min(self._known + 1, _REMEMBERED) if self._length == step else 1
        self._length = step
        self.reactions = self._trials.reactions(multipliers)

    def _predicted(self, step: float) -> Floats:
        """Return the multipliers at both ends of the coming step in s: those of the last steps go on."""
        last, before, first = self._lines
        if self._length == step and self._known > 1:
            return 3.0 * (last - before) + first if self._known == _REMEMBERED else 2.0 * last - before
        slope = (last[1] - last[0]) / self._length if self._length else 0.0 * last[1]
        return np.stack([last[1], last[1] + step * slope])

    def _effective(self, multipliers: Floats) -> Floats:
        """Return multipliers without their part that had no effect where the Jacobian was found."""
        if not len(self._directions):
            return multipliers
        return (self._directions.T @ (self._directions @ multipliers.ravel())).reshape(multipliers.shape)

    def _failure(self, residual: Floats, time: float) -> SimulationError:
        """Return the error with the joint that is open most."""
        count = self._trials.count
        worst = int(np.argmax(np.abs(residual) / self._limits)) % count
        joint = next(
            each.joint for each, part in zip(self.joints, self._trials.parts, strict=True) if worst < part.stop
        )
        return SimulationError(
            f"the joint {joint} does not close in the step from t = {time:.9g} s: it stays open by "
            f"{abs(residual[worst]):.3g} m or rad, and moves apart by {abs(residual[count + worst]):.3g} in a step, "
            f"after {_MOST_ITERATIONS} iterations; take a smaller step, or a larger tolerance than {joint.tolerance:g}"
        )

    # -- the Jacobian ---------------------------------------------------------------------------------------

    def _update(self, change: Floats, difference: Floats) -> None:
        """Update the inverse by a change of multipliers and what it has done [Broyden1965]."""
        found = self._inverse @ difference
        along = float(change @ found)
        if abs(along) > 1e-3 * float(change @ change):
            self._inverse = self._inverse + np.outer(change - found, change @ self._inverse) / along

    def _inverted(self, multipliers: Floats, step: float) -> Floats:
        """Return the pseudo-inverse of the Jacobian over the square of the step in s, by differences.

        Raises
        ------
        SimulationError
            When the FMUs cannot tell the two ends of a wrench apart.
        """
        jacobian = self._jacobian(multipliers) / step**2
        count = self._trials.count
        distinct = jacobian[:count] - 0.5 * jacobian[count:]
        if np.linalg.norm(distinct) < _DISTINCT * np.linalg.norm(jacobian[:count]):
            raise SimulationError(
                f"position and velocity of joints cannot both be closed in steps of {step:g} s: "
                f"{names_of([each.instance.name for each in self.together])} integrate a wrench by its mean "
                f"alone; let them make {STEPS} steps or more in a communication step, by rates"
            )
        left, values, right = np.linalg.svd(jacobian)
        kept = values > _RANK * values[0]
        self._directions = right[kept]
        return (right[kept].T / values[kept]) @ left[:, kept].T

    def _jacobian(self, multipliers: Floats) -> Floats:
        """Return the Jacobian by differences large enough to be seen."""
        jacobian = np.zeros((multipliers.size, multipliers.size))
        for _ in range(_TRIES):
            self.jacobians += 1
            perturbations = self._moves[self._is_moment.astype(int)]
            jacobian = self._trials.differences(multipliers, perturbations)
            responses = np.max(np.abs(jacobian), axis=0) * perturbations
            factors = np.ones(2)
            for kind in (0, 1):
                largest = float(np.max(responses[self._is_moment == kind], initial=0.0))
                if largest > 0.0 and not 0.1 * _RESPONSE <= largest <= 10.0 * _RESPONSE:
                    factors[kind] = np.clip(_RESPONSE / largest, 1.0 / _GROWTH, _GROWTH)
            self._moves = self._moves * factors
            if (factors == 1.0).all():
                break
        return jacobian


def joint_rates(joints: Sequence[BoundJoint], rates: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of steps in a communication step, with those of the FMUs of joints.

    Raises
    ------
    InputError
        When an FMU that holds its inputs shall make one step.
    """
    result = dict(rates)
    for handle in (handle for joint in joints for handle in joint.handles):
        name = handle.instance.name
        if result.setdefault(name, STEPS) == 1 and not handle.instance.interpolates:
            raise InputError(
                f"the rate of {name} is 1, but it holds its inputs over a step; with a joint it needs {STEPS} or more"
            )
    return result
