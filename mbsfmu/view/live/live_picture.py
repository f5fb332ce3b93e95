"""What is seen of coupled FMUs: poses of bodies from the present values of signals, where FMUs tell what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling import DataError
from mbsfmu.view.circuit.circuit_diagram import circuit_diagrams
from mbsfmu.view.live.live_variables import LiveVariables
from mbsfmu.view.scene.payload import Uncoloured, motion, placements_of, pressure_sources
from mbsfmu.view.scene.poses import Placement
from mbsfmu.view.scene.recorded import Recorded

_MOMENT = 1e-3
"""Length in s of the standing motion from which the scene takes shapes and extent."""


class LivePicture:
    """The picture of a run.

    Parameters
    ----------
    placements
        The mechanisms.
    names, units
        Of the signals.
    systems
        Names of the systems of the machine.
    sources
        Where the pressures of nodes come from.
    scene
        What the page draws; None where nothing can be drawn, and `reason` tells why.
    circuits, circuit
        Schematics, and the signals whose indices are their sources.
    """

    def __init__(
        self,
        placements: Sequence[Placement],
        names: Sequence[str],
        units: Sequence[str],
        systems: Sequence[str],
        sources: Mapping[str, str | float],
        scene: Mapping[str, Any] | None,
        circuits: Sequence[Mapping[str, Any]] = (),
        circuit: Sequence[str] = (),
        reason: str = "",
    ) -> None:
        self._placements, self._names, self._units, self._systems = placements, list(names), list(units), systems
        self.pressures, self.scene, self.reason = sources, scene, reason
        self.circuits = circuits
        self._circuit = [self._names.index(each) for each in circuit]
        self._nodes = [self._names.index(each) for each in sources.values() if isinstance(each, str)]

    @classmethod
    def of(cls, run: Cosimulation, variables: LiveVariables) -> LivePicture:
        """Return the picture of a run at its start."""
        names = [each["name"] for each in variables.signals]
        units = [each["unit"] for each in variables.signals]
        values = np.concatenate([np.zeros(0), *(port.read() for port in variables.ports(run))])[variables.order]
        try:
            drawable = run.result().drawable
            if drawable is None:
                raise InputError("the run does not know its FMUs")
            machine = drawable.machine()
            begin = run.time
            standing = Trajectory(np.array([begin, begin + _MOMENT]), np.stack([values, values]), names, units)
            scene = {**motion(machine, standing, arrows=False), "notes": []}
            recorded = Recorded(standing, standing.time[:1], machine.systems)
            sources = {
                node: recorded.name(*source) or "" if isinstance(source, tuple) else source
                for node, source in pressure_sources(machine, recorded).items()
                if not isinstance(source, Uncoloured)
            }
            circuit: dict[str, int] = {}

            def read(signal: str) -> dict[str, int]:
                return {"index": circuit.setdefault(signal, len(circuit))}

            circuits = circuit_diagrams(machine, standing, read)
            placements, systems = placements_of(machine), list(machine.systems)
            return cls(placements, names, units, systems, sources, scene, circuits, list(circuit))
        except (InputError, DataError) as error:
            return cls([], names, units, [], {}, None, reason=str(error))

    def at(self, time: float, values: NDArray[np.float64]) -> tuple[list[float] | None, list[float], list[float]]:
        """Return what is seen at a time in s, from the values of all signals.

        Twelve numbers of each body, origin in m and rotation matrix by rows; pressures in bar; values of the circuits.
        """
        if self.scene is None:
            return None, [], []
        now = Trajectory(np.array([time]), values[None], self._names, self._units)
        recorded = Recorded(now, now.time, self._systems)
        numbers: list[float] = []
        for placement in self._placements:
            (frames,) = placement.frames(recorded)
            for origin, rotation in zip(frames.origin, frames.rotation, strict=True):
                numbers += [*np.asarray(origin, dtype=float).tolist(), *np.ravel(rotation).tolist()]
        oil = [float(values[place]) for place in self._circuit]
        return numbers, [float(values[place]) / 1e5 for place in self._nodes], oil
