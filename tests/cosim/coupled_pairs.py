"""Pairs of linear units whose coupled motion is known in closed form, for what error control promises."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cosim.linear_units import CONNECTIONS, LinearSystem, change_description, export_linear, halves
from scipy.linalg import block_diag

_POSITIONS = ("two.position=one.u", "one.position=two.u")


@dataclass(frozen=True)
class Pair:
    """Linear systems and what connects them."""

    systems: tuple[LinearSystem, ...]
    connections: tuple[str, ...]

    def _matrices(self) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Return A of the whole, C of all outputs by all states, and the names of the outputs.

        u = K y and y = C x + D u give y = (1 − D K)⁻¹ C x.
        """
        a, b, c, d = (block_diag(*(each.matrices[index] for each in self.systems)) for index in range(4))
        inputs, outputs = (
            [f"{each.name}.{variable.name}" for each in self.systems for variable in getattr(each, which)]
            for which in ("inputs", "outputs")
        )
        k = np.zeros((len(inputs), len(outputs)))
        for connection in self.connections:
            source, target = connection.split("=")
            k[inputs.index(target), outputs.index(source)] = 1.0
        shown = np.linalg.solve(np.eye(len(outputs)) - d @ k, c)
        return a + b @ k @ shown, shown, outputs

    @property
    def start(self) -> np.ndarray:
        """States at the start."""
        return np.concatenate([each.initial_states({}) for each in self.systems])

    def exact(self, times: np.ndarray, dropped: int = 0) -> dict[str, np.ndarray]:
        """Return all outputs at times in s; so many of the fastest growing modes are left out of the start."""
        a, shown, names = self._matrices()
        values, vectors = np.linalg.eig(a)
        shares = np.linalg.solve(vectors, self.start.astype(complex))
        shares[np.argsort(-values.real)[:dropped]] = 0.0
        states = np.real(vectors @ (np.exp(np.outer(values, times)) * shares[:, np.newaxis]))
        return dict(zip(names, shown @ states, strict=True))

    def without_growth(self) -> Pair:
        """Return the pair starting with nothing of its fastest growing mode, which is real."""
        a, _, _ = self._matrices()
        values, vectors = np.linalg.eig(a)
        shares = np.linalg.solve(vectors, self.start.astype(complex))
        shares[np.argmax(values.real)] = 0.0
        states, first = np.real(vectors @ shares), 0
        systems = []
        for each in self.systems:
            size = len(each.initial_states({}))
            systems.append(_started(each, states[first : first + size]))
            first += size
        return Pair(tuple(systems), self.connections)

    def error(self, result, dropped: int = 0) -> float:
        """Return the largest error over time as a share of each signal's magnitude."""
        exact = self.exact(result.time, dropped)
        return max(float(np.max(np.abs(result[name] - each)) / np.max(np.abs(each))) for name, each in exact.items())

    def export(self, folder: Path, *, declared: bool = False, named: bool = False, saves: bool = True) -> list[Path]:
        """Write the units; by default without nominal values, as most are, and without naming their states."""
        paths = []
        for each in self.systems:
            flags = {} if saves else {"canGetAndSetFMUstate": False}
            path = export_linear(each, folder, "rk4", 1e-3, **flags)
            if not declared:
                change_description(path, ' nominal="[^"]+"', "")
            if named:
                name_states(path, len(each.initial_states({})))
            paths.append(path)
        return paths


def name_states(path: Path, count: int) -> None:
    """Let the model structure of an FMU of FMI 2.0 name its states x0, x1, … by their derivatives."""
    with zipfile.ZipFile(path) as archive:
        text = archive.read("modelDescription.xml").decode()
    names = re.findall('ScalarVariable name="([^"]+)"', text)
    variables = "".join(
        f'<ScalarVariable name="der(x{index})" valueReference="{1000 + index}" causality="local" '
        f'variability="continuous" initial="calculated"><Real derivative="{names.index(f"x{index}") + 1}"/>'
        "</ScalarVariable>"
        for index in range(count)
    )
    unknowns = "".join(f'<Unknown index="{len(names) + 1 + index}"/>' for index in range(count))
    change_description(path, "</ModelVariables>", f"{variables}</ModelVariables>")
    change_description(path, "</Outputs>", f"</Outputs><Derivatives>{unknowns}</Derivatives>")


def masses(amplitude: float = 1.0, *, velocities: bool = False, stiffness: float = 40.0, spring: float = 20.0) -> Pair:
    """Return two masses on springs to the ground and a spring between them; each FMU takes the other's position.

    They give their positions alone, or their velocities beside. A negative stiffness is an inverted pendulum's.
    """
    outputs = {"position": "m", "velocity": "m/s"} if velocities else {"position": "m"}
    systems = []
    for name, mass, ground, start in (("one", 1.0, stiffness, 0.1), ("two", 2.0, 30.0, -0.05)):
        matrices = [[[0, 1], [-(ground + spring) / mass, 0]], [[0], [spring / mass]], np.eye(2)[: len(outputs)]]
        matrices.append(np.zeros((len(outputs), 1)))
        arrays = [np.array(each, dtype=float) for each in matrices]
        systems.append(LinearSystem(name, arrays, [start * amplitude, 0.0], {"u": "m"}, outputs))
    return Pair(tuple(systems), _POSITIONS)


def force_and_velocity(amplitude: float = 1.0, damping: float = 0.0) -> Pair:
    """Return the halves of the oscillator; with a damper between them the force depends directly on the velocity."""
    systems = (_started(each, amplitude * each.initial_states({})) for each in halves(coupling_damping=damping))
    return Pair(tuple(systems), CONNECTIONS)


def pendulum() -> Pair:
    """Return an inverted pendulum coupled with an oscillator, whose motion grows e^2 times in a second."""
    return masses(stiffness=-9.81, spring=4.0)


def _started(system: LinearSystem, start: np.ndarray) -> LinearSystem:
    inputs = {each.name: each.unit for each in system.inputs}
    return LinearSystem(
        system.name, system.matrices, start, inputs, {each.name: each.unit for each in system.outputs}
    )  # fmt: skip
