"""Integration of FMU states by one-step methods of SciPy up to event indicators.

One-step methods, for a run stops at every communication point, where inputs jump or bend: methods with a memory (CVODE,
LSODA) would begin there anew with their lowest order, and what they remember could not be saved with the states of the
FMUs. All that is kept here from one step to the next is a length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.times import NEIGHBOURS, resolution

Floats = NDArray[np.float64]

SOLVERS = ("radau", "dop853")
"""Radau IIA of order 5, for stiff FMUs too; Dormand's and Prince's explicit method of order 8, cheaper for others."""
RELATIVE_TOLERANCE = 1e-6
"""Of states, where neither the call nor the FMU says another one."""
_LEAST_TOLERANCE = 1e-13
_NEAR = 1e-10
"""Tolerance of event times relative to a step."""
_MOST_CUTS = 30
_LOOKS = (0.25, 0.5, 0.75)
"""Points of a step at which indicators are checked for double sign changes."""
_CLOSE_LOOKS = (*(0.5**power for power in range(40, 2, -1)), *_LOOKS)
"""The same in a step that begins where an indicator is next to zero, on either side, as after an event: it may be back
there at any time, as that of a ball that bounces again."""
_MOST_RETRIES = 30
_SHORTER = 0.25


class Refused(Exception):  # noqa: N818 - no error: a shorter step may do
    """An FMU that cannot be evaluated at trial states; `reason` is its message."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ModelEquations(Protocol):
    """The integrated equations.

    Attributes
    ----------
    tolerances
        Absolute tolerances of the states for a relative one of 1, shape (states,).
    """

    tolerances: Floats

    def rates(self, time: float, states: Floats) -> Floats:
        """Return derivatives of the states in 1/s; raises `Refused` where it cannot."""
        ...

    def indicators(self, time: float, states: Floats) -> Floats:
        """Return event indicators, shape (indicators,); raises `Refused` where it cannot."""
        ...

    def jacobian(self) -> Callable[[float, Floats], Floats] | None:
        """Return the function of ∂ẋ/∂x; None for differences."""
        ...


class Arrival(NamedTuple):
    """End of a step: time in s, states, and whether an indicator has changed its sign."""

    time: float
    states: Floats
    crosses: bool


class FmuIntegrator:
    """Integrates one FMU.

    Parameters
    ----------
    name
        Of the unit, for messages.
    equations
        What is integrated.
    solver
        One of `SOLVERS`.
    relative
        Relative tolerance of the states.

    Attributes
    ----------
    length
        Of the step in s that is made next, if nothing cuts it; 0 where the solver has to find one.
    """

    def __init__(self, name: str, equations: ModelEquations, solver: str, relative: float) -> None:
        self._name, self._equations, self._kind = name, equations, solver
        self._relative = max(relative, _LEAST_TOLERANCE)
        self.length = 0.0
        self._solver: Any = None
        self._time = self._goal = self._closest = 0.0
        self._states = self._positive = np.zeros(0)
        self._looks = _LOOKS

    def begin(self, time: float, states: Floats, goal: float, *, follows_event: bool) -> None:
        """Start integration at a time in s towards a later one; return whether an event was handled there."""
        self._time, self._states, self._goal = time, states, goal
        # About time zero floating-point numbers are closer to each other than steps can be.
        self._closest = resolution(time, goal)
        self._looks = _CLOSE_LOOKS if follows_event else _LOOKS
        self._positive = self._signs(time, states)
        self._solver = None

    def advance(self) -> Arrival:
        """Make one step towards the goal, or to just after the first sign change of an indicator.

        Raises
        ------
        SimulationError
            When no step is short enough.
        """
        solver = self._solver = self._step(self._solver or self._from_here(self._goal, self.length))
        change, crosses, next_looks = self._first_change(solver), False, _LOOKS
        for _ in range(_MOST_CUTS):
            if change is None:
                break
            crosses = solver.t - change <= _NEAR * (solver.t - self._time) + NEIGHBOURS * self._closest
            if crosses:
                break
            # The interpolant inside a step is less exact than its end: the step is made again, to where that says.
            solver, self._solver = self._step(self._from_here(change, change - self._time)), None
            change, next_looks = self._first_change(solver), _CLOSE_LOOKS
        self._time, self._states, self._looks = float(solver.t), solver.y.copy(), next_looks
        return Arrival(self._time, self._states, crosses)

    def correct(self, states: Floats) -> None:
        """Go on from other states where it is, next to those reached: signs of indicators stay as they were."""
        self._states, self._solver = states, None

    # -- steps ----------------------------------------------------------------------------------------------

    def _from_here(self, bound: float, length: float) -> Any:
        """Return a solver from where the FMU is to a time in s, whose first step has a length in s; 0 for any."""
        from scipy import integrate  # noqa: PLC0415 - most runs need none, and it takes long to load

        among = {"radau": integrate.Radau, "dop853": integrate.DOP853}
        given: dict[str, Any] = {"jac": self._equations.jacobian()} if self._kind == "radau" else {}
        left = bound - self._time
        return among[self._kind](
            self._equations.rates,
            self._time,
            self._states,
            bound,
            rtol=self._relative,
            atol=self._relative * self._equations.tolerances,
            first_step=min(length, left) if length > 0.0 else None,
            **given,
        )

    def _step(self, solver: Any) -> Any:
        """Make one step and return its solver: a new one where the FMU has refused, with a shorter step."""
        wanted, reason = solver.h_abs, ""
        for _ in range(_MOST_RETRIES):
            wanted = solver.h_abs
            try:
                message = solver.step()
            except Refused as refused:
                reason = refused.reason
                solver = self._from_here(solver.t_bound, _SHORTER * min(wanted, solver.t_bound - self._time))
                continue
            if solver.status == "failed":
                raise SimulationError(
                    f"{self._name} cannot be integrated beyond t = {solver.t:.9g} s: {_words(message)}"
                )
            # The end of a step that was cut says nothing against the longer one that was wanted.
            self.length = max(self.length, solver.h_abs) if solver.t == solver.t_bound else solver.h_abs
            return solver
        raise SimulationError(
            f"{self._name} cannot be integrated beyond t = {self._time:.9g} s: {reason}, in steps of {wanted:.3g} s too"
        )

    # -- indicators -----------------------------------------------------------------------------------------

    def _signs(self, time: float, states: Floats) -> NDArray[np.bool_]:
        """Return which indicators are positive: zero is not [FMI 2.0.4, section 3.1.1; FMI 3.0.2, section 3.1.1]."""
        return self._equations.indicators(time, states) > 0.0

    def _first_change(self, solver: Any) -> float | None:
        """Return the time in s just behind the first change of a sign in a step that was made; None for none."""
        if not len(self._positive):
            return None
        begin, end = self._time, solver.t
        inside = solver.dense_output()

        def changed(time: float) -> bool:
            states = solver.y if time == end else inside(time)
            return bool((self._signs(time, states) != self._positive).any())

        before = begin
        for time in (*(begin + share * (end - begin) for share in self._looks), end):
            if changed(time):
                return _boundary(changed, before, time, self._closest)
            before = time
        return None


def _boundary(changed: Callable[[float], bool], before: float, after: float, closest: float) -> float:
    """Return the first time in s, as closely, at which something has changed, between one before that and one after."""
    while after - before > closest:
        middle = 0.5 * (before + after)
        if changed(middle):
            after = middle
        else:
            before = middle
    return after


def _words(message: str | None) -> str:
    """Return why a solver gives up, in our words."""
    return "no step is short enough for the tolerance" if not message or "step size" in message else message
