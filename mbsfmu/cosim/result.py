"""What a coupled run gives back, and what is recorded on its way."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mbsfmu.cosim.energy import PowerBond
from mbsfmu.cosim.exchange import Exchange
from mbsfmu.cosim.instance import Floats
from mbsfmu.ended import RunError, RunInterrupted
from mbsfmu.trajectory import Trajectory

if TYPE_CHECKING:
    from mbsfmu.model.coupled import ModelData
    from mbsfmu.motion import Animation

logger = logging.getLogger(__name__)

_FIRST_ROWS = 1024
LARGE_RESIDUAL = 2e-3
"""Share of the energy exchanged at a power bond from which on the residual energy is told; forces of the hydraulic
mechanisms are off by 5 % of their range there, and by all of it at 5e-2."""
_NO_ENERGY = 1e-6  # J, of machines at rest


@dataclass
class Facts:
    """What a run was and cost.

    Attributes
    ----------
    algorithm, extrapolation, control
        As called.
    step
        Communication step in s, the first one where steps are controlled.
    steps
        Communication steps made and kept.
    smallest_step, largest_step
        Of these, in s.
    iterations
        Sweeps over all units, those for steps that were not kept and for error estimates too.
    rollbacks
        How often all units were brought back to an earlier state.
    rejected_steps
        Steps made again with a smaller length.
    unit_steps
        Steps that each unit made.
    notes
        Sentences for the user: what units could not do.
    undriven
        Inputs that neither a connection nor a signal nor a given value drives, as `unit.variable`.
    wall_seconds
        Time that the stepping took.
    energy_residual
        Residual energy of each power bond at the end in J; the signals `energy_residual.<bond>` have it over time.
    energy_exchanged
        Energy that went through each power bond in J, to and fro added up.
    texts
        For each String output, the times in s at which it changed, with the text from then on.
    """

    algorithm: str = ""
    extrapolation: str = ""
    control: str = "fixed"
    step: float = 0.0
    steps: int = 0
    smallest_step: float = 0.0
    largest_step: float = 0.0
    iterations: int = 0
    rollbacks: int = 0
    rejected_steps: int = 0
    unit_steps: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    undriven: list[str] = field(default_factory=list)
    wall_seconds: float = 0.0
    energy_residual: dict[str, float] = field(default_factory=dict)
    energy_exchanged: dict[str, float] = field(default_factory=dict)
    texts: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    def tell(self, sentence: str) -> None:
        """Keep a sentence for the user, and log it."""
        self.notes.append(sentence)
        logger.warning("%s", sentence)


class CosimulationResult(Trajectory):
    """Outputs of all units over time, and what the run was and cost.

    Attributes
    ----------
    facts
        What the run was and cost; each of its attributes is one of the result too.
    """

    facts: Facts

    def __getattr__(self, name: str) -> Any:
        if name != "facts" and "facts" in self.__dict__ and name in Facts.__dataclass_fields__:
            return getattr(self.facts, name)
        raise AttributeError(f"a result has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *Facts.__dataclass_fields__]

    def _facts(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self.facts).items() if isinstance(value, str | int | float)}

    def _told(self) -> str:
        return f"{self.facts.algorithm}, {self.facts.extrapolation}, steps {self.facts.control}, {super()._told()}"

    def animate(
        self, model: ModelData, beside: Trajectory | Mapping[str, Trajectory] | None = None, **chosen: Any
    ) -> Animation:
        """Return the machine in motion, for notebooks and pages.

        Parameters
        ----------
        model
            What the units were exported from: they do not say what their bodies look like.
        beside
            Another run of the same model, or several by their labels, as ghosts.
        chosen
            What `mbsfmu.animate` takes beside: `label`, `values`, `frame_rate`.

        Raises
        ------
        InputError
            When there is no mechanism, or a run lacks the coordinates of a joint; the sentence names them.
        """
        from mbsfmu.motion import animate  # noqa: PLC0415 - few runs are looked at

        return animate(self, model, beside, **{"label": f"{self.facts.algorithm}, {self.facts.step:g} s", **chosen})

    @property
    def energy_residual_max(self) -> float | None:
        """Largest magnitude of the residual energy over time and bonds in J; None without bonds."""
        signals = [name for name in self.names if name.startswith("energy_residual.")]
        return max((float(np.max(np.abs(self[name]))) for name in signals), default=None)

    @property
    def energy_residual_share(self) -> float | None:
        """Largest magnitude of the residual energy as a share of the energy exchanged; None without bonds."""
        shares = [
            float(np.max(np.abs(self[f"energy_residual.{bond}"]))) / max(exchanged, _NO_ENERGY)
            for bond, exchanged in self.facts.energy_exchanged.items()
        ]
        return max(shares, default=None)

    def summary(self) -> dict[str, Any]:
        """Return what `cosim --json` writes."""
        return {**asdict(self.facts), "stop": float(self.time[-1]), "final": self.final()}


class CosimulationError(RunError):
    """A coupled run that failed on its way; `result` has what was recorded until then."""

    result: CosimulationResult


class CosimulationInterrupted(RunInterrupted):
    """A coupled run that was interrupted; `result` has what was recorded until then."""

    result: CosimulationResult


class Record:
    """Rows of outputs and residual energies at the communication points.

    Parameters
    ----------
    exchange
        The members.
    bonds
        The power bonds.
    start
        Start time in s.
    outputs
        Outputs at the start.

    Attributes
    ----------
    columns
        Numbers in a row.
    rows
        The rows with room for more, which `reserve` may put elsewhere; as many count as there are `times`.
    times
        Times of the rows in s.
    residuals, exchanged
        Energy of each bond in J until now: what was residual, and what went through it.
    """

    def __init__(self, exchange: Exchange, bonds: Sequence[PowerBond], start: float, outputs: Floats) -> None:
        self._exchange, self._bonds = exchange, bonds
        self.residuals = [0.0] * len(bonds)
        self.exchanged = [0.0] * len(bonds)
        self._width = len(outputs)
        self.columns = self._width + len(bonds)
        self.rows = np.zeros((_FIRST_ROWS, self.columns))
        self.rows[0, : self._width] = outputs
        self.times = [start]

    def add(self, time: float, outputs: Floats, energies: Sequence[tuple[float, float]]) -> None:
        """Take the outputs at the end of a step, and for each bond what one side got and the other gave in it, in J."""
        self.reserve(1)
        row = self.rows[len(self.times)]
        row[: self._width] = outputs
        for index, (got, given) in enumerate(energies):
            self.residuals[index] += got - given
            self.exchanged[index] += 0.5 * (abs(got) + abs(given))
            row[self._width + index] = self.residuals[index]
        self.times.append(time)

    def reserve(self, count: int) -> None:
        """Make room for so many rows more."""
        while len(self.times) + count > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])

    def result(self, facts: Facts) -> CosimulationResult:
        """Return what was recorded."""
        instances = {member.instance.name: member.instance for member in self._exchange.members}
        names = [f"{instance}.{variable}" for instance, variable in self._exchange.names]
        units = [instances[instance].variables[variable].unit for instance, variable in self._exchange.names]
        names += [f"energy_residual.{bond.name}" for bond in self._bonds]
        units += ["J"] * len(self._bonds)
        times = np.array(self.times)
        result = CosimulationResult(times, self.rows[: len(times)].copy(), names, units)
        facts.steps = len(times) - 1
        if facts.steps:
            lengths = np.diff(times)
            facts.smallest_step, facts.largest_step = float(lengths.min()), float(lengths.max())
        facts.unit_steps = {name: instance.steps for name, instance in instances.items()}
        facts.energy_residual = {
            bond.name: residual for bond, residual in zip(self._bonds, self.residuals, strict=True)
        }
        facts.energy_exchanged = {
            bond.name: exchanged for bond, exchanged in zip(self._bonds, self.exchanged, strict=True)
        }
        result.facts = facts
        return result


def residual_notes(result: CosimulationResult) -> Iterator[str]:
    """Say where the energy that the coupling brought in or took out is large beside what was exchanged."""
    for bond, exchanged in result.facts.energy_exchanged.items():
        residual = float(np.max(np.abs(result[f"energy_residual.{bond}"])))
        if residual > LARGE_RESIDUAL * exchanged + _NO_ENERGY:
            share = f"{100.0 * residual / exchanged:.2g} % of" if exchanged else "beside"
            yield (
                f"the coupling itself brought in or took out up to {residual:.3g} J at {bond}, {share} the "
                f"{exchanged:.3g} J exchanged there, and what is exchanged may be off by far more than that: take "
                "smaller steps, an extrapolation, or an iterated algorithm"
            )
