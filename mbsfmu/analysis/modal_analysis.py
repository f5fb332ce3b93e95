"""Modes of a model at an operating point: shapes in coordinates and pressures, and animations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.linear_system import LinearSystem, Mode
from mbsfmu.analysis.root_locus import RootLocus
from mbsfmu.base.errors import InputError
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.model.model_data import circuits_of
from mbsfmu.view.pages.blocks import number, quantity

if TYPE_CHECKING:
    from mbsfmu.view.scene import Animation

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_CYCLE = 2.0
"""Time in s of one period in an animation."""
_FRAMES = 121
"""Rows of that period."""
_ANGLE, _SHARE = 0.15, 0.06
"""Largest motion in an animation: rad, and relative to the machine's size …"""
_PRESSURE = 10e5
"""… and largest pressure in Pa: visible, but with visibly closed loops."""
_NEGLIGIBLE = 1e-9
"""Change relative to the largest of its kind below which it is round-off."""


@dataclass(frozen=True)
class ModeShape:
    """Shape of a mode in coordinates and pressures: δ = Re(shape · e^{λ t}).

    Attributes
    ----------
    mode
        The mode.
    motion
        Of joint coordinates by name, in m and rad; the largest is 1, with phase 0, where anything moves.
    pressures
        In Pa by name, to the same scale; where nothing moves, the largest is 1.
    """

    mode: Mode
    motion: dict[str, complex]
    pressures: dict[str, complex]


@dataclass(frozen=True)
class ModalAnalysis:
    """Modes of a linear system, with shapes and animations for a known machine.

    Attributes
    ----------
    system
        The linear system with the inputs and outputs that were chosen.
    coordinates
        The same with all coordinates and pressures as outputs; None of an FMU.
    machine
        What it was linearized of; None of an FMU.
    locus
        How modes change with a parameter, if one was varied.
    """

    system: LinearSystem
    coordinates: LinearSystem | None = None
    machine: Machine | None = None
    locus: RootLocus | None = None

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes, those with the greatest real part first."""
        return self.system.modes

    @cached_property
    def shapes(self) -> tuple[ModeShape, ...]:
        """The shapes of the modes, in their order; none of an FMU."""
        whole = self.coordinates
        if whole is None:
            return ()
        return tuple(self._shape(whole, mode, vector) for mode, vector in zip(whole.modes, whole.vectors, strict=True))

    def _shape(self, whole: LinearSystem, mode: Mode, vector: Complexes) -> ModeShape:
        changes = whole.c @ vector
        pressure = np.array([each.unit == "Pa" for each in whole.outputs], dtype=bool)
        # Coordinates count by the size of the state; a mode in pressures alone leaves of them round-off.
        moving = np.where(pressure, 0.0, np.abs(changes))
        forced = np.where(pressure, np.abs(changes), 0.0)
        leading = int(np.argmax(moving if np.max(moving, initial=0.0) > 0.0 else forced))
        if abs(changes[leading]) > 0.0:
            changes = changes / changes[leading]
        names = [each.name for each in whole.outputs]
        kinds: list[dict[str, complex]] = [{}, {}]
        for name, value, which in zip(names, changes.tolist(), pressure.tolist(), strict=True):
            kinds[which][name] = value
        return ModeShape(mode, *kinds)

    def animation(self, place: int) -> Animation:
        """Return an animation of a mode, with pressures as colours.

        One period takes 2 s. Motion and pressures are scaled separately for visibility; `caption` gives the ratio.

        Parameters
        ----------
        place
            Of the mode among `modes`, from 0.

        Raises
        ------
        InputError
            When there is no such mode or no mechanism, or no body moves.
        """
        from mbsfmu.view.scene import Animation  # noqa: PLC0415 - drawn where asked for
        from mbsfmu.view.scene.payload import motion  # noqa: PLC0415

        machine, shape = self._drawn(place)
        made = motion(machine, self._trajectory(machine, shape), arrows=False)
        return Animation({**made, "notes": []}, f"{machine.name}: mode {place + 1}")

    def caption(self, place: int) -> str:
        """Return the description of a mode's animation, with its scales."""
        machine, shape = self._drawn(place)
        moved, pressed = self._scales(machine, shape)
        mode = shape.mode
        sentences = [f"Mode {place + 1} {mode.in_words()}."]
        if mode.oscillates:
            period = quantity(2.0 * np.pi / mode.eigenvalue.imag, "s")
            sentences.append(f"One period, {period}, takes {_CYCLE:g} s here, and does not decay.")
        largest = max(shape.motion, key=lambda name: abs(shape.motion[name]))
        unit = self._unit(largest)
        swing = moved * abs(shape.motion[largest])
        sentences.append(f"{largest} moves by ±{number(swing)} {unit}.")
        if pressed:
            true = moved * max(map(abs, shape.pressures.values())) / 1e5
            sentences.append(
                f"Colours are deviations of the pressure, up to ±{_PRESSURE / 1e5:g} bar; "
                f"with this motion they would be ±{number(true)} bar."
            )
        return " ".join(sentences)

    def _drawn(self, place: int) -> tuple[Machine, ModeShape]:
        if not 0 <= place < len(self.modes):
            raise InputError(f"there is no mode {place}; there are {len(self.modes)}, from 0")
        if self.machine is None or not self.shapes:
            raise InputError("the machine is not known: modes of FMUs have no animation")
        shape = self.shapes[place]
        if not self._moves(shape):
            raise InputError(f"in mode {place} no body moves")
        return self.machine, shape

    def _moves(self, shape: ModeShape) -> bool:
        """Return whether bodies take part in a mode."""
        assert self.coordinates is not None
        names = {each.name for each in self.coordinates.states} & set(shape.motion)
        share = sum(value for name, value in shape.mode.participation.items() if name in names)
        return share > _NEGLIGIBLE and any(shape.motion.values())

    @property
    def moving(self) -> tuple[int, ...]:
        """Indices of the modes with motion of bodies."""
        if self.machine is None:
            return ()
        return tuple(place for place, shape in enumerate(self.shapes) if self._moves(shape))

    def _unit(self, name: str) -> str:
        assert self.coordinates is not None
        return next(each.unit for each in self.coordinates.outputs if each.name == name)

    def _scales(self, machine: Machine, shape: ModeShape) -> tuple[float, float]:
        """Return the scales of motion and pressures for an animation; 0 without pressures."""
        from mbsfmu.view.scene.payload import motion  # noqa: PLC0415 - drawn where asked for

        still = motion(machine, self._trajectory(machine, shape, (0.0, 0.0)), arrows=False)
        size = max(high - low for low, high in zip(still["lowest"], still["highest"], strict=True))
        allowed = [
            (_ANGLE if self._unit(name) == "rad" else _SHARE * size) / abs(value)
            for name, value in shape.motion.items()
            if value
        ]
        most = max(map(abs, shape.pressures.values()), default=0.0)
        return min(allowed), _PRESSURE / most if most > 0.0 else 0.0

    def _trajectory(self, machine: Machine, shape: ModeShape, scales: tuple[float, float] | None = None) -> Trajectory:
        """Return a period of a mode as signals: coordinates about the operating point, pressures as deviations."""
        assert self.coordinates is not None
        moved, pressed = self._scales(machine, shape) if scales is None else scales
        time = np.linspace(0.0, _CYCLE, _FRAMES)
        turning = np.exp(2j * np.pi * time / _CYCLE)
        middle = {each.name: each.value for each in self.coordinates.outputs}
        signals = {name: middle[name] + moved * np.real(value * turning) for name, value in shape.motion.items()}
        signals |= {name: pressed * np.real(value * turning) for name, value in shape.pressures.items()}
        for name in _held_nodes(machine):
            signals.setdefault(name, np.zeros(len(time)))
        return Trajectory(time, np.column_stack(list(signals.values())), list(signals), [""] * len(signals))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: what the JSON file holds."""

        def shown(values: dict[str, complex]) -> dict[str, list[float]]:
            return {name: [value.real, value.imag] for name, value in values.items()}

        modes = [
            {
                "eigenvalue": [mode.eigenvalue.real, mode.eigenvalue.imag],
                "frequency": mode.frequency,
                "damping": mode.damping,
                "participation": mode.participation,
            }
            for mode in self.modes
        ]
        for told, shape in zip(modes, self.shapes, strict=False):
            told |= {"motion": shown(shape.motion), "pressures": shown(shape.pressures)}
        locus = {} if self.locus is None else {"root_locus": self.locus.to_dict()}
        return {**self.system.to_dict(), "modes": modes, **locus}


def _held_nodes(machine: Machine) -> list[str]:
    """Return the pressures of nodes held by sources, with zero deviation."""
    return [
        f"{name}.{node}.pressure" for name, data in circuits_of(machine.systems).items() for node in data.source_nodes
    ]
