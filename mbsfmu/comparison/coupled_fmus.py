"""Coupled FMUs as the subject of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.cosim import Cosimulation, CosimulationResult, CouplingOptions
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.cosim.coupling.coupling_data import Signal
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.modelling import closest_match

KEYWORDS = (
    *("order", "rates", "unit_tolerance", "model_exchange", "unit_solver"),
    *("isolate", "time_limit", "strict", "start_time"),
)
"""Options of coupled runs that all runs of a comparison share."""


@dataclass(frozen=True)
class CoupledFmus:
    """FMUs with their connections, as `cosimulate` takes them; sent to worker processes.

    Attributes
    ----------
    source
        An SSP file, a folder that holds one, or FMU files.
    connections, parameters, inputs, bonds
        As for `cosimulate`.
    coupling
        Options of all runs, of `KEYWORDS`.

    Raises
    ------
    InputError
        When an option of the runs is none of `KEYWORDS`.
    """

    source: str | Path | Sequence[str | Path]
    connections: Sequence[str | tuple[str, str] | Connection] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Signal] = field(default_factory=dict)
    bonds: Sequence[str] = ()
    coupling: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.coupling:
            if name not in KEYWORDS:
                raise InputError(
                    f"there is no option '{name}' of all coupled runs of a comparison; {closest_match(name, KEYWORDS)}"
                )

    @property
    def name(self) -> str:
        """Name of the package, or names of the FMUs."""
        files = [self.source] if isinstance(self.source, str | Path) else list(self.source)
        return " and ".join(Path(str(file).partition("=")[2] or file).stem for file in files)

    def run(self, algorithm: str, **options: Any) -> Cosimulation:
        """Return a coupled run that has not begun.

        Parameters
        ----------
        algorithm
            One of `CHOICES`.
        options
            Options of `CouplingOptions`.

        Raises
        ------
        InputError
            When options do not go together.
        """
        name, extrapolation = parted(algorithm)
        chosen = {**self.coupling, "algorithm": name, "extrapolation": extrapolation, **options}
        return Cosimulation(
            self.source,
            options=CouplingOptions(**chosen),
            connections=self.connections,
            parameters=self.parameters,
            inputs=self.inputs,
            bonds=self.bonds,
        )

    @contextmanager
    def opened(self, step: float, **options: Any) -> Iterator[Cosimulation]:
        """Give a run at its start.

        Parameters
        ----------
        step
            Communication step in s where neither the package nor the FMUs suggest one.
        options
            As for `run`, but for the step.

        Raises
        ------
        InputError
            As `run`.
        """
        with ExitStack() as stack:
            try:
                run = stack.enter_context(self.run("jacobi", **options))
            except InputError:
                run = stack.enter_context(self.run("jacobi", step=step, **options))
            yield run

    def result(self, algorithm: str, **options: Any) -> CosimulationResult:
        """Return the result of a whole coupled run; arguments as for `run`.

        Raises
        ------
        InputError
            When options do not go together, or an FMU cannot do what is asked.
        SimulationError
            When it fails.
        """
        with self.run(algorithm, **options) as run:
            run.run()
            return run.result()
