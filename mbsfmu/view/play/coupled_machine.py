"""The FMUs of a model's systems, coupled in a page: the compiled master with the FMUs linked to it."""

from __future__ import annotations

import base64
import gzip
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compiler import unoptimized
from mbsfmu.cosim.coupling.algorithms import CHOICES, parted
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.exporting.coupled_export import ALGORITHMS, EXTRAPOLATIONS, STEP, CoupledCode, coupled_code
from mbsfmu.exporting.fmu_export import export
from mbsfmu.fmu.description import FmuDescription
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.modelling.variables import Causality
from mbsfmu.simulation.run_options import RunOptions
from mbsfmu.view.play.live_poses import FILE, LivePoses
from mbsfmu.view.play.replay import Replay
from mbsfmu.view.scene.payload import placements_of
from mbsfmu.view.scene.recorded import Recorded

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
                    poses = _poses(code, machine)
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


def _poses(code: CoupledCode, machine: Machine) -> LivePoses:
    """Return the poses of bodies from the variables of coupled FMUs."""
    described = [each.variable for each in code.description.variables]
    shown = [each.name for each in described if each.causality in (Causality.OUTPUT, Causality.LOCAL)]
    names = Trajectory(np.zeros(1), np.zeros((1, len(shown))), shown, ["1"] * len(shown))
    parameters = {each.name: each.name for each in described if each.causality is Causality.PARAMETER}
    return LivePoses.of(placements_of(machine), Recorded(names, names.time, machine.systems), parameters)
