"""Result of a run: signals over time, and run statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.integration.error_measure import NOT_ESTIMATED, ErrorEstimate
from mbsfmu.integration.solver import Statistics
from mbsfmu.io.tabular import full_name
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    from mbsfmu.view.scene import Animation


class Result(Trajectory):
    """A trajectory with the statistics of its run.

    Attributes
    ----------
    model, formulation, solver
        Names.
    step
        Step of the output in s; the largest internal step for fixed-step solvers.
    wall_seconds, interim_seconds
        Time on the clock that the run took, and the part of it in code that is not optimized, in which runs of large
        models begin while optimized code is compiled.
    statistics
        What it cost.
    error
        How far it is off: the largest error that was estimated, as a share of the range of its variable.
    machine
        What ran, with the parameters that it had; None where nobody said.
    qualified
        `system.variable` by the names of signals, which are found by it too.
    driving
        Names of signals by `system.variable` of connected inputs that have their values, which find them too.
    """

    def __init__(
        self,
        time: Floats,
        values: Floats,
        names: Sequence[str],
        units: Sequence[str],
        descriptions: Mapping[str, str] | None = None,
        *,
        model: str,
        formulation: str,
        solver: str,
        step: float,
        wall_seconds: float,
        statistics: Statistics,
        machine: Machine | None = None,
        qualified: Mapping[str, str] | None = None,
        driving: Mapping[str, str] | None = None,
        interim_seconds: float = 0.0,
        error: ErrorEstimate = NOT_ESTIMATED,
    ) -> None:
        super().__init__(time, values, names, units, descriptions)
        self.model = model
        self.formulation = formulation
        self.solver = solver
        self.step = step
        self.wall_seconds = wall_seconds
        self.interim_seconds = interim_seconds
        self.statistics = statistics
        self.error = error
        self.machine = machine
        self._qualified = dict(qualified or {})
        self._by_system = {**(driving or {}), **{full: name for name, full in self._qualified.items()}}

    def full_name(self, name: str) -> str:
        """Return the full name of the signal that `name` refers to; `system.variable` is accepted too.

        Raises
        ------
        UnknownNameError
            When no signal or more than one is meant.
        """
        return full_name(name, self._column_by_name, "signal", by_system=self._by_system)

    def _called(self, name: str) -> tuple[str, ...]:
        return (*super()._called(name), self._qualified.get(name, name))

    def _summary_line(self) -> str:
        return f"{self.model}, {self.formulation}, {self.solver}, {super()._summary_line()}"

    def _metadata(self) -> dict[str, Any]:
        entries = ("model", "formulation", "solver", "step", "wall_seconds")
        return {name: getattr(self, name) for name in entries} | {"steps": self.statistics.steps}

    def animate(self, beside: Trajectory | Mapping[str, Trajectory] | None = None, **chosen: Any) -> Animation:
        """Return an animation of the machine, for notebooks and pages.

        Parameters
        ----------
        beside
            Another run of the same model, or several by their labels: ghosts, so that it is seen how far they are off.
        chosen
            What `mbsfmu.animate` takes beside: `label`, `frame_rate`.

        Raises
        ------
        InputError
            When there is no mechanism, or a run lacks the coordinates of a joint; the sentence names them.
        """
        from mbsfmu.view.scene import animate  # noqa: PLC0415 - few runs are looked at

        if self.machine is None:
            raise InputError(f"the run of {self.model} does not know its model; take mbsfmu.animate(run, model)")
        return animate(self, self.machine, beside, **{"label": self.formulation, **chosen})

    def largest(self, name: str) -> float | None:
        """Return the largest magnitude of a signal over the run; None if there is none."""
        bounds = self.bounds(name)
        return None if bounds is None else max(abs(bound) for bound in bounds)

    def bounds(self, name: str) -> tuple[float, float] | None:
        """Return the least and greatest value of a signal over the run; None if there is none.

        Without the system's name, the bounds are those of all matching signals.
        """
        found = [self[full] for full in self.names if full == name or full.endswith("." + name)]
        if not found:
            return None
        return min(float(np.min(values)) for values in found), max(float(np.max(values)) for values in found)

    def _machine_drift(self) -> float | None:
        """Return the largest drift of the total energy of mechanisms and circuits; None unless both exist.

        Energy delivered by a circuit is work on its mechanism, and cancels in the sum.
        """
        named = {
            kind: [name for name in self.names if name == kind or name.endswith(f".{kind}")]
            for kind in ("energy.drift", "hydraulic_energy.drift")
        }
        if not all(named.values()):
            return None
        drifts = [self[name] for names in named.values() for name in names]
        return float(np.max(np.abs(np.sum(drifts, axis=0))))

    def summary(self) -> dict[str, Any]:
        """Return the summary that `simulate --json` writes."""
        least_work, greatest_work = self.bounds("energy.work") or (None, None)
        return {
            "model": self.model,
            "formulation": self.formulation,
            "solver": self.solver,
            "step": self.step,
            "stop": float(self.time[-1]),
            "wall_seconds": self.wall_seconds,
            "interim_seconds": self.interim_seconds,
            **asdict(self.statistics),
            "embedded_distance": self.statistics.embedded_distance if self.solver == "rk4" else None,
            "error_estimate": self.error.share,
            "error_variable": self.error.variable,
            "error_note": self.error.note or None,
            "newton_mean": self.statistics.newton_mean,
            "unconverged_max": self.largest("solver.unconverged_max"),
            "energy_drift_max": self.largest("energy.drift"),
            "hydraulic_energy_drift_max": self.largest("hydraulic_energy.drift"),
            "machine_energy_drift_max": self._machine_drift(),
            "actuator_work_max": greatest_work,
            "actuator_work_min": least_work,
            "constraint_position_max": self.largest("constraint.position"),
            "constraint_velocity_max": self.largest("constraint.velocity"),
            "final": self.final(),
        }
