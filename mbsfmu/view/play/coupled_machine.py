"""Compiled machines of a page: the coupled FMUs of a model, and C for the poses of bodies."""

from __future__ import annotations

import base64
import gzip
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compiler import unoptimized
from mbsfmu.cosim.coupling.algorithms import CHOICES, parted
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.equations.kinematics import NO_TURN
from mbsfmu.equations.rotation import quaternion_product
from mbsfmu.exporting.coupled_export import ALGORITHMS, EXTRAPOLATIONS, STEP, CoupledCode, coupled_code
from mbsfmu.exporting.fmu_export import export
from mbsfmu.fmu.description import FmuDescription
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.modelling.variables import Causality
from mbsfmu.native.traced_code import body_of, function_code
from mbsfmu.simulation.run_options import RunOptions
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.tracing.symbols import SymbolicArray, expression, symbols
from mbsfmu.view.play.replay import Replay
from mbsfmu.view.scene.payload import placements_of
from mbsfmu.view.scene.poses import Placement, Recorded, recorded_coordinates

FILE = "poses.c"


@dataclass(frozen=True)
class LivePoses:
    """The poses of all bodies as a C function.

    Attributes
    ----------
    names
        Variables of the FMU that the function takes, in their order.
    code
        The C file, with `mbsfmu_poses(given, made)`: origin in m and rotation matrix by rows of each body, twelve
        numbers.
    """

    names: tuple[str, ...]
    code: str

    @classmethod
    def of(cls, placements: Sequence[Placement], recorded: Recorded, parameters: Mapping[str, str]) -> LivePoses:
        """Write the poses of mechanisms.

        Parameters
        ----------
        placements
            The mechanisms.
        recorded
            A run, which tells what variables are called.
        parameters
            Names of parameters by `system.variable`; others are as in the data.

        Raises
        ------
        InputError
            When a joint coordinate is no variable of the run.
        """
        given = _GivenValues(recorded, parameters)
        made = [_poses(each, given) for each in placements]
        values = ca.vertcat(*(symbol for _, symbol in given.symbols.values()))
        function = ca.Function("mbsfmu_poses", [values], [ca.vertcat(*made)])
        helpers: dict[str, str] = {}
        body = body_of(function, ["given"], ["made"], helpers)
        parts = [
            "#include <math.h>",
            '#include "visibility.h"',
            *helpers.values(),
            function_code("poses", ["given", "made"], body),
            "EXPORT void NAMED(mbsfmu_poses)(double *given, double *made) { poses(given, made); }\n",
        ]
        return cls(tuple(given.symbols), "\n\n".join(parts))


class _GivenValues:
    """Symbols for values of variables, by what these are called in a run."""

    def __init__(self, recorded: Recorded, parameters: Mapping[str, str]) -> None:
        self._recorded, self._parameters = recorded, parameters
        self.symbols: dict[str, tuple[SymbolicArray, ca.SX]] = {}

    def variable(self, system: str, variable: str, what: str) -> SymbolicArray:
        """Return the symbol of a variable that changes in runs, shape (1,)."""
        self._recorded.need(system, variable, what)
        return self._named(self._recorded.name(system, variable) or variable)

    def parameter(self, reference: str, value: float) -> SymbolicArray | np.ndarray:
        """Return the symbol of a parameter, shape (1,), or the value that it has in the data."""
        name = self._parameters.get(reference)
        return np.array([value]) if name is None else self._named(name)

    def _named(self, name: str) -> SymbolicArray:
        if name not in self.symbols:
            symbol, array = symbols(f"given_{len(self.symbols)}", 1)
            self.symbols[name] = array, symbol
        return self.symbols[name][0]


def _poses(placement: Placement, given: _GivenValues) -> ca.SX:
    """Return origin and rotation matrix of each body, one below the other."""
    topology, system = placement.mechanism.topology, placement.system
    coordinates: list[Any] = [np.zeros(1)] * topology.coordinates
    references: list[Any] = [np.array(NO_TURN)] * topology.references
    for body, joint in zip(topology.bodies, topology.tree, strict=True):
        what = f"where '{body.name}' is"
        for index, name in recorded_coordinates(joint):
            coordinates[index] = given.variable(system, f"{body.name}.{name}", what)
        if joint.reference is not None:
            four = [given.variable(system, f"{body.name}.quaternion.{part}", what) for part in "wxyz"]
            inner = quaternion_product(np.concatenate(four), placement.back(body))
            references[joint.reference] = np.concatenate([inner, NO_TURN[4:]])
    values = zip(placement.parameter_names, placement.parameters, strict=True)
    numbers = [given.parameter(f"{system}.{name}", float(value)) for name, value in values]
    nothing = np.zeros(0)
    frames = placement.kinematics.frames(
        *(np.concatenate([nothing, *each]) for each in (coordinates, references, numbers))
    )
    rows = [
        np.concatenate([origin, np.ravel(turned)])
        for origin, turned in zip(frames.origin, frames.rotation, strict=True)
    ]
    return expression(np.concatenate(rows))


PLATFORM = "wasm32"
RUNNABLE = tuple(each for each in CHOICES if parted(each)[0] in ALGORITHMS and parted(each)[1] in EXTRAPOLATIONS)
"""Algorithms with their extrapolation that FMUs of coupled FMUs have."""


@dataclass(frozen=True)
class CoupledMachine:
    """The coupled FMUs of a model.

    Attributes
    ----------
    algorithms
        What the page offers, as `RUNNABLE` has them, with the description and the WebAssembly module of each.
    steps
        Communication steps in s.
    poses
        What the poses of bodies follow from.
    """

    algorithms: Mapping[str, tuple[FmuDescription, bytes]]
    steps: Sequence[float]
    poses: LivePoses

    @classmethod
    def of(
        cls,
        model: CoupledModel,
        options: RunOptions,
        algorithms: Sequence[str],
        steps: Sequence[float],
        machine: Machine,
    ) -> CoupledMachine:
        """Export the FMUs of a model, and compile them with the master.

        Parameters
        ----------
        model
            The model.
        options
            Options of the steps of each FMU.
        algorithms, steps
            Of the coupling, at least one of each.
        machine
            How the model looks.

        Raises
        ------
        InputError
            When the model has one system, a word or number is wrong, or an FMU does not tell where bodies are.
        """
        if len(model.systems) < 2:
            raise InputError(f"{model.name} has one system; there is nothing to couple")
        for each in algorithms:
            if each not in RUNNABLE:
                raise InputError(f"coupled FMUs in a page run by {', '.join(RUNNABLE)}, not by '{each}'")
        if not steps or not all(step > 0.0 for step in steps):
            raise InputError(f"the communication steps are {list(steps)}; they must be positive")
        found: dict[str, tuple[FmuDescription, bytes]] = {}
        poses = None
        with tempfile.TemporaryDirectory(prefix="mbsfmu-") as folder:
            with unoptimized():  # of the FMUs only descriptions and sources are taken
                package = export(model, folder, layout="separate", sources="single", options=options)[-1]
            for each in algorithms:
                algorithm, extrapolation = parted(each)
                coupling = CouplingOptions(algorithm=algorithm, extrapolation=extrapolation, step=steps[0])
                with coupled_code(package, model.name, [PLATFORM], options=coupling) as code:
                    poses = _poses_of(code, machine)
                    found[each] = code.description, code.library(PLATFORM, {FILE: poses.code})
        assert poses is not None
        return cls(found, steps, poses)

    def data(self, own: Mapping[str, int], full: Mapping[str, str], replay: Replay, bodies: int) -> dict[str, Any]:
        """Return the data for the worker of the page.

        Parameters
        ----------
        own
            References of the monolithic variables by their names.
        full
            `system.variable` by these names.
        replay
            What repeats the coupled run.
        bodies
            How many bodies there are.
        """
        description, _ = next(iter(self.algorithms.values()))
        variables = [each.variable for each in description.variables]
        places = {each.name: index for index, each in enumerate(variables)}
        pairs = {
            causality: [
                [own[name], places[reference]]
                for name, reference in full.items()
                if name in own and reference in places and variables[places[reference]].causality in causality
            ]
            for causality in ((Causality.INPUT,), (Causality.PARAMETER,), (Causality.OUTPUT, Causality.LOCAL))
        }
        inputs, parameters, signals = pairs.values()
        return {
            "algorithms": [
                {
                    "called": each,
                    "name": described.name,
                    "identity": described.identity,
                    "module": base64.b64encode(gzip.compress(module, 9, mtime=0)).decode("ascii"),
                }
                for each, (described, module) in self.algorithms.items()
            ],
            "steps": list(self.steps),
            "begin": {"algorithm": 0, "step": self.steps[0]},
            "step": places[STEP.name],
            "inputs": inputs,
            "parameters": parameters,
            "signals": signals,
            "poses": [places[each] for each in self.poses.names],
            "bodies": bodies,
            "replay": replay.data(),
        }


def _poses_of(code: CoupledCode, machine: Machine) -> LivePoses:
    """Return the poses of bodies from the variables of coupled FMUs."""
    described = [each.variable for each in code.description.variables]
    shown = [each.name for each in described if each.causality in (Causality.OUTPUT, Causality.LOCAL)]
    names = Trajectory(np.zeros(1), np.zeros((1, len(shown))), shown, ["1"] * len(shown))
    parameters = {each.name: each.name for each in described if each.causality is Causality.PARAMETER}
    return LivePoses.of(placements_of(machine), Recorded(names, names.time, machine.systems), parameters)
