"""Results of coupled runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.runs.drawable import Drawable
from mbsfmu.io.ended_runs import RunError, RunInterrupted
from mbsfmu.io.streams import SignalStream
from mbsfmu.io.trajectory import Trajectory

if TYPE_CHECKING:
    from mbsfmu.model.coupled import ModelData
    from mbsfmu.model.machine import Machine
    from mbsfmu.view.scene import Animation

logger = logging.getLogger(__name__)

LARGE_RESIDUAL = 2e-3
"""Residual energy relative to the exchanged energy of a power bond at which a warning is given; forces of the hydraulic
mechanisms are off by 5 % of their range there, and by all of it at 5e-2.
"""
_NO_ENERGY = 1e-6  # J, of machines at rest


class CosimulationResult(Trajectory):
    """Outputs of all FMUs over time with run statistics; rows in a file are read on demand.

    Attributes
    ----------
    statistics
        What the run was and cost; each of its attributes is one of the result too.
    drawable
        What a picture is made from where the FMUs say what they are; None where the run is not one of FMUs.
    flat_names
        Names of signals by those with the flat names that FMUs have for the variables.
    """

    statistics: RunStatistics
    drawable: Drawable | None = None
    flat_names: Mapping[str, str] = MappingProxyType({})

    _file: SignalStream
    _last: tuple[float, Floats]

    def full_name(self, name: str) -> str:
        """Return the full name of the one signal that a name means, which may be that with a flat name."""
        return super().full_name(self.flat_names.get(name, name))

    def is_in(self, stream: SignalStream, time: float, row: Floats) -> None:
        """Take it that the rows are in a file, but for those that the result has; the last one is known."""
        self._file, self._last = stream, (time, row)
        self._waiting = self.time, self.values_by_column
        del self.time, self.values_by_column

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name in ("time", "values_by_column") and "_file" in known:
            read = Trajectory.from_file(self._file.found)
            self.time = np.concatenate([read.time, self._waiting[0]])
            self.values_by_column = np.concatenate([read.values_by_column, self._waiting[1]])
            return known[name]
        if name != "statistics" and "statistics" in known and name in RunStatistics.__dataclass_fields__:
            return getattr(self.statistics, name)
        raise AttributeError(f"a result has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *RunStatistics.__dataclass_fields__]

    def _metadata(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self.statistics).items() if isinstance(value, str | int | float)}

    def _summary_line(self) -> str:
        run = self.statistics
        return f"{run.algorithm}, {run.extrapolation}, steps {run.control}, {super()._summary_line()}"

    def animate(
        self, model: ModelData | None = None, beside: Trajectory | Mapping[str, Trajectory] | None = None, **chosen: Any
    ) -> Animation:
        """Return the machine in motion, for notebooks and pages.

        Parameters
        ----------
        model
            What the FMUs were exported from; where it is not given, what they carry along.
        beside
            Another run of the same model, or several by their labels, as ghosts.
        chosen
            What `mbsfmu.animate` takes beside: `label`, `values`, `frame_rate`.

        Raises
        ------
        InputError
            When there is no mechanism, no FMU says what it is, or a run lacks the coordinates of a joint; the sentence
            names them.
        """
        from mbsfmu.view.scene import animate  # noqa: PLC0415 - few runs are looked at

        machine = self._machine() if model is None else model
        return animate(
            self, machine, beside, **{"label": f"{self.statistics.algorithm}, {self.statistics.step:g} s", **chosen}
        )

    def _machine(self) -> Machine:
        if self.drawable is None:
            raise InputError("the run does not know its units; give the model that they are of")
        return self.drawable.machine()

    @property
    def recorded(self) -> tuple[Path, float] | None:
        """The file that has the rows, and the time in s of the last one there; None where they are in memory."""
        if "_file" not in self.__dict__:
            return None
        return self._file.found, self._file.end

    @property
    def end(self) -> float:
        """Time of the last row in s."""
        return self._last[0] if "_last" in self.__dict__ else float(self.time[-1])

    def final(self) -> dict[str, float]:
        """Return the last value of every signal."""
        if "_last" not in self.__dict__:
            return super().final()
        return dict(zip(self.names, self._last[1].tolist(), strict=True))

    @property
    def energy_residual_max(self) -> float | None:
        """Largest magnitude of the residual energy over time and bonds in J; None without bonds."""
        return max(self.statistics.energy_residual_largest.values(), default=None)

    @property
    def energy_residual_share(self) -> float | None:
        """Largest magnitude of the residual energy as a share of the energy exchanged; None without bonds."""
        largest = self.statistics.energy_residual_largest
        shares = [
            largest[bond] / max(exchanged, _NO_ENERGY) for bond, exchanged in self.statistics.energy_exchanged.items()
        ]
        return max(shares, default=None)

    def summary(self) -> dict[str, Any]:
        """Return the data that `cosim --json` writes."""
        return {**asdict(self.statistics), "stop": self.end, "final": self.final()}


class CosimulationError(RunError):
    """Failed coupled run; `result` has the recorded part."""

    result: CosimulationResult


class CosimulationInterrupted(RunInterrupted):
    """Interrupted coupled run; `result` has the recorded part."""

    result: CosimulationResult


def residual_notes(result: CosimulationResult) -> Iterator[str]:
    """Return messages on bonds with large residual energy."""
    run = result.statistics
    coupling = run.algorithm if run.extrapolation == Extrapolation.ZERO else f"{run.algorithm}, {run.extrapolation},"
    steps = f"{run.step:.3g}" if run.control == "fixed" else f"{run.smallest_step:.3g} to {run.largest_step:.3g}"
    for bond, exchanged in run.energy_exchanged.items():
        residual = run.energy_residual_largest[bond]
        if residual > LARGE_RESIDUAL * exchanged + _NO_ENERGY:
            share = f"{100.0 * residual / exchanged:.2g} % of" if exchanged else "beside"
            yield (
                f"the coupling ({coupling} by steps of {steps} s) brought in or took out up to {residual:.3g} J at "
                f"{bond}, {share} the "
                f"{exchanged:.3g} J exchanged there, and what is exchanged may be off by far more than that: take "
                "smaller steps, an extrapolation, or an iterated algorithm"
            )
