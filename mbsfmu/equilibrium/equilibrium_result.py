"""Result of an equilibrium search: values, stability, undetermined variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equilibrium.small_motions import GROWING
from mbsfmu.equilibrium.undetermined_volumes import describe_pressures_above
from mbsfmu.model.coupled import ModelData
from mbsfmu.modelling import closest_match

Model = TypeVar("Model", bound=ModelData)


@dataclass(frozen=True, repr=False)
class Equilibrium(Generic[Model]):
    """A static equilibrium of a model.

    Attributes
    ----------
    model
        The model with its `start` there: it is simulated, exported and compared as every model.
    found
        Values of the free variables, by `system.variable`.
    values
        Coordinates, states and outputs there, by `system.variable`.
    units
        Units of all these, by the same names.
    kept
        What the conditions of rest leave open: the guess has decided, by what the motion from there keeps.
    moved
        By how much what is open differs from the guess, in its units, where that is not negligible.
    above_sources
        Pressures that are above what the sources of their circuit bring about, with the latter in Pa: loads, or oil
        that is shut in, hold them.
    moving
        Rates, in the units of what they belong to over s, of states that move all the same: those that nothing depends
        on, as angles of shafts that turn, and with a horizon those that are slower.
    unbalanced_load
        The largest load that is left, in N m or N.
    horizon
        As it was asked for, in s; None where nothing moves, so that there is no need of it.
    eigenvalues
        Of the motion about it, in 1/s, those with the greatest real part first; shape (number,). Discrete states, and
        what changes with time, stay as they are.
    drifts
        Whether a small motion about it goes on, for nothing brings it back or brakes it.
    undecided
        Whether the linear part has a motion neither grow nor fade that leads to no other position of rest; False with
        a horizon, within which such a motion stands.
    sampled
        Names of the blocks that are sampled: what they answer to a motion is not in the eigenvalues.
    """

    model: Model
    found: dict[str, float]
    values: dict[str, float]
    units: dict[str, str]
    kept: tuple[str, ...]
    moved: dict[str, float]
    above_sources: dict[str, float]
    moving: dict[str, float]
    unbalanced_load: float
    horizon: float | None
    eigenvalues: np.typing.NDArray[np.complex128]
    drifts: bool
    undecided: bool
    sampled: tuple[str, ...]

    @property
    def stable(self) -> bool | None:
        """Whether it is stable within the horizon, by its linearization.

        None if unknown: blocks are sampled, small motions drift, or nonlinear terms decide.
        """
        slowest = GROWING if self.horizon is None else 1.0 / self.horizon
        grows = bool(np.max(self.eigenvalues.real, initial=-np.inf) > slowest)
        doubtful = self.drifts or self.undecided or self._creeping[1] > 1.0
        return None if self.sampled or (doubtful and not grows) else not grows

    @property
    def _creeping(self) -> tuple[str, float]:
        """Return the state with the largest relative creep within the horizon, and this fraction."""
        if self.horizon is None:
            return "", 0.0
        rates = {name: abs(rate) for name, rate in self.moving.items() if name in self.kept}
        share = {name: rate * self.horizon / max(abs(self[name]), 1.0) for name, rate in rates.items()}
        return max(share.items(), key=lambda each: each[1], default=("", 0.0))

    def __getitem__(self, name: str) -> float:
        """Return a value by `system.variable`.

        Raises
        ------
        InputError
            When there is none of that name.
        """
        if name not in self._known:
            raise InputError(
                f"there is no '{name}' at the equilibrium of {self.model.name}; {closest_match(name, self._known)}"
            )
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __len__(self) -> int:
        return len(self._known)

    @property
    def _known(self) -> dict[str, float]:
        return {**self.values, **self.found}

    @property
    def stability(self) -> str:
        """Stability in words."""
        growing = float(np.max(self.eigenvalues.real, initial=0.0))
        if self.sampled:
            return f"whether it is stable is not known: {', '.join(self.sampled)} is sampled; simulate it from there"
        creeping, share = self._creeping
        by = self._change(creeping, self.moving[creeping] * (self.horizon or 0.0)) if creeping else ""
        if self.stable is None and share > 1.0:
            return (
                f"whether it is stable within the horizon of {self.horizon:g} s is not known: {creeping} creeps by "
                f"{by} in that time, at its rate, more than it is; simulate it from there"
            )
        if self.stable is None and not self.drifts:
            return "whether it is stable is not known: in its linear part a motion neither grows nor fades"
        if self.stable is None:
            return "whether it is stable is not known: nothing brings small motions back or brakes them; they drift"
        if not self.stable:
            return f"unstable: a motion grows with {growing:.3g} 1/s"
        if self.horizon is None:
            return "stable"
        beside = f", but for what creeps: {creeping} by {by} in that time, at its rate" if creeping else ""
        return f"stable within the horizon of {self.horizon:g} s{beside}"

    @property
    def openness(self) -> tuple[str, ...]:
        """Undetermined variables in words: kept at the guess, or moved."""
        staying = [name for name in self.kept if name not in self.moved]
        moved = [f"{name} by {self._change(name, change)}" for name, change in self.moved.items()]
        return tuple(
            f"{sentences}: {', '.join(names)}"
            for sentences, names in (("open, as the guess has it", staying), ("open, moved from the guess", moved))
            if names
        )

    def __repr__(self) -> str:
        sentences = ", ".join(f"{name} = {self._with_unit(name)}" for name in self.found)
        lines = [
            f"<Equilibrium of {self.model.name}: {sentences}" if sentences else f"<Equilibrium of {self.model.name}"
        ]
        lines += [f"  {self.stability}; loads balance to {self.unbalanced_load:.2g} N or N.m"]
        lines += [f"  {sentence}" for sentence in self.openness]
        lines += [f"  {sentences}"] if (sentences := describe_pressures_above(self.above_sources, self.values)) else []
        lines += [f"  moving: {name} by {rate:.3g} {self.units[name]}/s" for name, rate in self.moving.items()]
        return "\n".join(lines) + ">"

    def _change(self, name: str, change: float) -> str:
        """Return a change of a variable with its unit."""
        unit = self.units[name]
        return f"{change:.3g}" if unit == "1" else f"{change:.3g} {unit}"

    def _with_unit(self, name: str) -> str:
        unit = self.units[name]
        return f"{self[name]:.6g}" + ("" if unit == "1" else f" {unit}")
