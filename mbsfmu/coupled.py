"""The root object a user makes: named systems, their connections, and the signals that drive them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self, Unpack

from pydantic import BeforeValidator, Discriminator, Field, SerializeAsAny, Tag, model_validator

from hydraulics import Circuit
from mbsfmu.actuator_lines import check_actuators
from mbsfmu.data import Data, DataError, FrozenMap, meant, word
from mbsfmu.errors import InputError
from mbsfmu.formulations.absolute_system import AbsoluteSystem
from mbsfmu.formulations.block_system import BlockSystem
from mbsfmu.formulations.circuit_system import CircuitSystem
from mbsfmu.formulations.coupled_system import CoupledSystem
from mbsfmu.formulations.mechanism_system import MechanismSystem
from mbsfmu.formulations.system import System
from mbsfmu.formulations.wiring import Wiring
from mbsfmu.identity import Origin
from mbsfmu.interruption import heeding_interruptions
from mbsfmu.model.block import BLOCKS, Block
from mbsfmu.model.mechanism import Mechanism, read_json, write_json
from mbsfmu.model.names import Name
from mbsfmu.native.compiled import compile_in_process
from mbsfmu.part_files import Parts, load_parts, read_part_file
from mbsfmu.signals import AnySignal
from mbsfmu.simulation.factory import make_simulation
from mbsfmu.simulation.options import RunKeywords, RunOptions
from mbsfmu.simulation.simulation import Simulation


def _kind(data: Any) -> str | None:
    """Tell a mechanism from a circuit by what it is made of; a block has a type."""
    if isinstance(data, Mechanism) or (isinstance(data, dict) and "bodies" in data):
        return "mechanism"
    if isinstance(data, Circuit) or (isinstance(data, dict) and "components" in data):
        return "circuit"
    if isinstance(data, Block) or (isinstance(data, dict) and "type" in data):
        return "block"
    return None


def _made(data: Any) -> Any:
    """Make the block that a dictionary describes."""
    return BLOCKS.made(data) if _kind(data) == "block" else data


AnySystem = Annotated[
    Annotated[Mechanism, Tag("mechanism")]
    | Annotated[Circuit, Tag("circuit")]
    | Annotated[SerializeAsAny[Block], Tag("block")],
    Discriminator(
        _kind,
        custom_error_type="system",
        custom_error_message="it must have 'bodies' (a mechanism), 'components' (a circuit) or a 'type' (a block)",
    ),
    BeforeValidator(_made),
]


_NO_TEXT = r"\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
Text = Annotated[str, word(f"[^{_NO_TEXT}]*", "a text has no control characters and no halves of characters")]
"""What descriptions of units can hold: characters of XML."""


class CoupledModel(Data):
    """Systems and the connections between their variables: written once, simulated, exported, co-simulated.

    Attributes
    ----------
    name
        Name of the model; letters, digits, `_` and `-`.
    description
        One line on it.
    systems
        Mechanisms, circuits and blocks by name.
    connections
        Pairs of `system.variable`: source and target. A source is an output, or a calculated parameter such as
        `mechanism.cylinder.static_force`, which drives a parameter.
    signals
        Signals over time by the input that follows them, as `system.variable`.
    stop_time, step
        End and step of a run in s, where nothing else is said.
    version, author, copyright, license
        Of the model, for those who get a unit that is exported from it.

    Raises
    ------
    DataError
        When the parts do not fit together; the message is one sentence.
    """

    name: Annotated[str, word(r"[A-Za-z_][A-Za-z0-9_-]*", "a name has letters, digits, _ and -, a letter or _ first")]
    description: Text = ""
    systems: FrozenMap[Name, AnySystem]
    connections: tuple[tuple[str, str], ...] = ()
    signals: FrozenMap[str, AnySignal] = {}
    stop_time: Annotated[float, Field(gt=0)] = 10.0
    step: Annotated[float, Field(gt=0)] = 1e-3
    version: Text = "1.0"
    author: Text = ""
    copyright: Text = ""
    license: Text = ""

    @model_validator(mode="after")
    def _has_systems(self) -> Self:
        if not self.systems:
            raise ValueError("a model needs at least one system")
        for reference in self.signals:
            if (name := reference.partition(".")[0]) not in self.systems:
                raise DataError(f"signal '{reference}' drives no system '{name}'; {meant(name, self.systems)}")
        if self.connections or self.signals:
            wiring = Wiring(dict(self._parts(absolute=False)), self.connections)
            for reference in self.signals:
                wiring.free_input(reference)
        check_actuators(self.systems, self.connections, self.signals)
        return self

    # -- files ----------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, parts: Iterable[str | os.PathLike[str]] = ()) -> Self:
        """Read a model from a JSON file.

        Parameters
        ----------
        path
            The file. It never makes code run.
        parts
            Python files that define parts of the model, as components of a user's own; they are run.

        Raises
        ------
        DataError
            When the file is no JSON, or what it says is no model.
        InputError
            When a file of parts cannot be run.
        OSError
            When the file cannot be read.
        """
        with load_parts(parts).given():
            return cls.from_dict(read_json(path))

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a JSON file."""
        write_json(path, self.to_dict())

    # -- equations ------------------------------------------------------------------------------------------

    def system(self, *, absolute: bool = False) -> CoupledSystem:
        """Make the equations of the whole.

        Parameters
        ----------
        absolute
            Whether mechanisms are in absolute coordinates, as `dca-alm` takes them.

        Raises
        ------
        DataError
            When connections close an algebraic loop, or one carries what depends on accelerations.
        """
        return CoupledSystem(self.name, dict(self._parts(absolute)), self.connections)

    def _parts(self, absolute: bool) -> Iterator[tuple[str, System]]:
        in_coordinates = AbsoluteSystem if absolute else MechanismSystem
        for name, data in self.systems.items():
            if isinstance(data, Block):
                yield name, BlockSystem(data, name)
                continue
            part = in_coordinates(data) if isinstance(data, Mechanism) else CircuitSystem(data)
            part.name = name
            yield name, part

    @heeding_interruptions()
    def simulation(
        self, *, options: RunOptions | None = None, compiled: bool = True, **given: Unpack[RunKeywords]
    ) -> Simulation:
        """Make a monolithic simulation in process.

        Parameters
        ----------
        options, given
            Options, and those of them that are given by name; `RunOptions` says what they are.
        compiled
            Whether implicit solvers run in compiled code where this machine has a C compiler; results are the
            same to round-off. What was compiled is kept for the next time.

        Raises
        ------
        InputError
            When an option is wrong or the mechanism cannot be assembled.
        """
        chosen = self._chosen(options, given, ("compiled",))
        system = self.system(absolute=chosen.kind.absolute)
        signals = {system.input_name(reference): signal for reference, signal in self.signals.items()}
        simulation = make_simulation(system, **self._described(self.name), signals=signals, options=chosen)
        if compiled:
            # Signals and the step are given to compiled code: they do not enter it.
            own = simulation.formulation.options.content()
            made_from = {**self.to_dict(), "signals": None}, chosen.content("step"), own, Parts.of(self).texts
            compile_in_process(simulation, made_from)
        return simulation

    def starts(self, *, options: RunOptions | None = None, **given: Unpack[RunKeywords]) -> dict[str, dict[str, float]]:
        """Return the values that each system's connected inputs and parameters have at the start, by system.

        Options and errors as for `simulation`.
        """
        whole = self.simulation(options=options, compiled=False, **given)
        names = {variable.name for variable in whole.variables}
        result: dict[str, dict[str, float]] = {name: {} for name in self.systems}
        for source, target in self.connections:
            system, _, variable = target.partition(".")
            result[system][variable] = whole.get(source if source in names else source.partition(".")[2])
        return result

    @heeding_interruptions()
    def simulation_of(
        self,
        name: str,
        *,
        options: RunOptions | None = None,
        starts: Mapping[str, float] | None = None,
        **given: Unpack[RunKeywords],
    ) -> Simulation:
        """Make a simulation of one system alone, to be coupled from outside.

        Parameters
        ----------
        name
            Name of the system.
        options, given
            As for `simulation`.
        starts
            Start values of connected inputs and parameters; what the other systems give at the start by default.

        Raises
        ------
        InputError
            When there is no such system, an option is wrong, or the mechanism cannot be assembled.
        """
        if name not in self.systems:
            raise InputError(f"there is no system '{name}' in {self.name}; {meant(name, self.systems)}")
        chosen = self._chosen(options, given, ("starts",))
        values = self.starts(options=chosen)[name] if starts is None else starts
        part = dict(self._parts(chosen.kind.absolute))[name]
        for kind in ("inputs", "parameters"):
            variables = (
                replace(variable, start=values.get(variable.name, variable.start)) for variable in getattr(part, kind)
            )
            setattr(part, kind, tuple(variables))
        signals = {
            reference.removeprefix(f"{name}."): signal
            for reference, signal in self.signals.items()
            if reference.startswith(f"{name}.")
        }
        return make_simulation(part, **self._described(f"{self.name}.{name}"), signals=signals, options=chosen)

    def _chosen(self, options: RunOptions | None, given: RunKeywords, beside: Iterable[str]) -> RunOptions:
        """Return what the options come to with the model's step."""
        chosen = RunOptions.of(options, given, beside).completed()
        return chosen if chosen.step is not None else chosen.model_copy(update={"step": self.step})

    def _described(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "content": (
                self.model_dump(mode="json", include={"systems", "connections", "signals"}),
                name,
                Parts.of(self).texts,
            ),
            "origin": Origin(self.version, self.author, self.copyright, self.license or _UNLICENSED),
            "description": self.description,
            "stop_time": self.stop_time,
        }


_UNLICENSED = "of the model: not stated; of the runtime in this unit: BSD-3-Clause"


def unit_from_dict(arguments: dict[str, Any], folder: Path | None = None) -> Simulation:
    """Make the simulation that an exported unit is.

    Parameters
    ----------
    arguments
        `model`: the model as a dictionary; `system`: name of the system that it is alone, or None for the
        whole; `starts`: start values of a system alone; `options`: those of `RunOptions`; `parts`: names of
        the files that define parts of it.
    folder
        Where the files of parts are; None where what they define is given already.
    """
    files = [] if folder is None else [read_part_file(folder / name) for name in arguments["parts"]]
    with Parts.from_files(files).given():
        model = CoupledModel.from_dict(arguments["model"])
    options = RunOptions.from_dict(arguments["options"])
    if arguments["system"] is None:
        return model.simulation(compiled=False, options=options)
    return model.simulation_of(arguments["system"], starts=arguments["starts"], options=options)
