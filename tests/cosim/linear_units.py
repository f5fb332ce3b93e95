"""Native FMUs of linear systems ẋ = A x + B u, y = C x + D u, and the two-mass oscillator made of two of them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.linalg import expm

from mbsfmu.compiling.compiler import host_platform
from mbsfmu.io.signals import AnySignal
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.native.native_package import export_native
from mbsfmu.simulation.simulation import make_simulation
from mbsfmu.systems.system import System

MASSES, STIFFNESSES, DAMPING = (1.0, 2.0), (40.0, 20.0), 0.4
START = np.array([0.1, 0.0, 0.1, 0.0])
"""Positions in m and velocities in m/s of both masses at the start; the coupling spring is relaxed."""
CONNECTIONS = ("two.force=one.force", "one.velocity=two.velocity")
NAMES = ("one.position", "one.speed", "two.position", "two.speed")
LOOP = ("first.y=second.u", "second.y=first.u")
"""Connections of `gain_units`."""


class LinearSystem(System):
    """ẋ = A x + B u, y = C x + D u; starts at x₀."""

    def __init__(self, name, matrices, start, inputs, outputs):
        self.name = name
        self.matrices = matrices
        self._start = np.asarray(start, dtype=float)
        self.states = tuple(Variable(f"x{k}", start=value) for k, value in enumerate(start))
        self.inputs = tuple(
            Variable(each, Causality.INPUT, Variability.CONTINUOUS, unit, 0.0) for each, unit in inputs.items()
        )
        self.outputs = tuple(Variable(each, Causality.OUTPUT, unit=unit) for each, unit in outputs.items())

    def rates(self, instant):
        return self.matrices[0] @ instant.states + self.matrices[1] @ instant.inputs

    def evaluate_outputs(self, instant):
        return self.matrices[2] @ instant.states + self.matrices[3] @ instant.inputs

    def initial_states(self, parameters):
        return self._start

    def residual(self, instant):
        return np.zeros(0)

    def closure(self, instant):
        return np.zeros(0)

    def integral_rates(self, instant):
        return np.zeros(0)

    def initial_coordinates(self, parameters):
        return np.zeros(0), np.zeros(0)

    def initial_integrals(self, instant):
        return np.zeros(0)


def export_linear(
    system: System,
    folder: Path,
    solver: str,
    step: float,
    signals: dict[str, AnySignal] | None = None,
    fmi: Literal[2, 3] = 2,
    **flags: bool,
) -> Path:
    """Write a system as a native FMU; flags of its description are changed to say less than it can."""
    simulation = make_simulation(system, name=system.name, signals=signals or {}, solver=solver, step=step)
    path = export_native(simulation, folder / f"{system.name}.fmu", platforms=[host_platform()], fmi=fmi, force=True)
    if flags:
        degrade(path, flags)
    return path


def degrade(path: Path, flags: dict[str, bool]) -> None:
    """Change capability flags in the description of an FMU."""
    for flag, value in flags.items():
        change_description(path, rf'{flag}="\w+"', f'{flag}="{str(value).lower()}"')


def change_description(path: Path, pattern: str, new: str) -> None:
    """Change what a pattern finds in the description of an FMU."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    text, count = re.subn(pattern, new, files["modelDescription.xml"].decode())
    assert count, pattern
    files["modelDescription.xml"] = text.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def gain(name: str, factor: float, decay: float) -> LinearSystem:
    """y = factor · u + x, ẋ = −decay · x, x(0) = 1."""
    matrices = [np.array([[value]]) for value in (-decay, 0.0, 1.0, factor)]
    return LinearSystem(name, matrices, [1.0], {"u": "1"}, {"y": "1"})


def gain_units(folder: Path, first: float, second: float, **flags: bool) -> list[Path]:
    """Two gains, whose connection is an algebraic loop; the first one decays at 1/s, the second one not."""
    systems = gain("first", first, 1.0), gain("second", second, 0.0)
    return [export_linear(system, folder, "rk4", 1e-2, **flags) for system in systems]


def halves(
    masses=MASSES, stiffnesses=STIFFNESSES, damping=DAMPING, coupling_damping=0.0
) -> tuple[LinearSystem, LinearSystem]:
    """Return the oscillator's halves: a mass on a spring to the ground that takes a force; a mass with the spring
    between both, whose stretch is a state, that takes the velocity of the other one."""
    (m1, m2), (k1, k2), d1, d2 = masses, stiffnesses, damping, coupling_damping
    one = LinearSystem(
        "one",
        [np.array(each, dtype=float) for each in (
            [[0, 1], [-k1 / m1, -d1 / m1]], [[0], [1 / m1]], [[1, 0], [0, 1], [0, 1]], [[0], [0], [0]],
        )],
        START[:2], {"force": "N"}, {"position": "m", "speed": "m/s", "velocity": "m/s"},
    )  # fmt: skip
    two = LinearSystem(
        "two",
        [np.array(each, dtype=float) for each in (
            [[0, 1, 0], [0, -d2 / m2, -k2 / m2], [0, 1, 0]], [[0], [d2 / m2], [-1]],
            [[1, 0, 0], [0, 1, 0], [0, d2, k2]], [[0], [0], [-d2]],
        )],
        [*START[2:], 0.0], {"velocity": "m/s"}, {"position": "m", "speed": "m/s", "force": "N"},
    )  # fmt: skip
    return one, two


def whole(masses=MASSES, stiffnesses=STIFFNESSES, damping=DAMPING, coupling_damping=0.0) -> np.ndarray:
    """Return A of the whole oscillator, states (x₁, v₁, x₂, v₂)."""
    (m1, m2), (k1, k2), d1, d2 = masses, stiffnesses, damping, coupling_damping
    return np.array(
        [
            [0, 1, 0, 0],
            [-(k1 + k2) / m1, -(d1 + d2) / m1, k2 / m1, d2 / m1],
            [0, 0, 0, 1],
            [k2 / m2, d2 / m2, -k2 / m2, -d2 / m2],
        ]
    )


def exact(time: float) -> np.ndarray:
    """Return (x₁, v₁, x₂, v₂) of the oscillator at a time in s."""
    return expm(whole() * time) @ START
