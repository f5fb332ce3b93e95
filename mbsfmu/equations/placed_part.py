"""A part of a mechanism: its own variables among those of the mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from mbsfmu.equations.properties import Properties, Slot, VectorSlot
from mbsfmu.model.mechanism import Mechanism, joint_words
from mbsfmu.modelling import DynamicPart, Quantity, parameters_of
from mbsfmu.modelling.fields import Array


class PlacedPart:
    """A part with its variables in the mechanism.

    Parameters
    ----------
    part, mechanism
        The part and its mechanism.
    joints
        Names of its joints by their placeholders.
    properties
        Receives the part's parameters.
    first_state, first_input
        Indices of its first state and input among those of the mechanism.

    Attributes
    ----------
    owner
        Its type and name, for messages.
    states, inputs, outputs
        Its variables, with short names.
    """

    def __init__(
        self,
        part: DynamicPart,
        mechanism: Mechanism,
        joints: Mapping[str, str],
        properties: Properties,
        *,
        first_state: int,
        first_input: int,
    ) -> None:
        self._part = part
        self.owner = f"{part.type} '{part.name}'"
        self._words = {word: joint_words(mechanism, joint) for word, joint in joints.items()}
        self._slots = dict(self._registered(properties))
        self.states, self.inputs, self.outputs = (
            tuple(self.in_words(each) for each in quantities)
            for quantities in (part.states(), part.inputs(), part.outputs())
        )
        self._first_state, self._first_input = first_state, first_input

    def in_words(self, quantity: Quantity) -> Quantity:
        """Return a variable with the words of its joints."""
        name, unit, description = (
            text.format(**self._words) if self._words else text
            for text in (quantity.name, quantity.unit, quantity.description)
        )
        return replace(quantity, name=name, unit=unit, description=description)

    def _registered(self, properties: Properties) -> Iterable[tuple[str, Slot | VectorSlot]]:
        """Register the parameters; yield their slots by field name."""
        slots: dict[str, list[Slot]] = {}
        for quantity in map(self.in_words, parameters_of(self._part, self._part.name)):
            field = quantity.name.split(".")[1]
            slots.setdefault(field, []).append(properties.quantity(quantity))
        for field, own in slots.items():
            yield field, VectorSlot(tuple(own)) if len(own) > 1 else own[0]

    def numbers(self, parameters: Array) -> dict[str, Callable[[], Array]]:
        """Return the slots of its parameters, by short name."""
        return {field: partial(slot.of, parameters) for field, slot in self._slots.items()}

    def live(self, states: Array, inputs: Array) -> dict[str, Callable[[], Array]]:
        """Return the slots of its states and inputs, by short name."""
        numbers: dict[str, Callable[[], Array]] = {}
        for quantities, values, first in (
            (self._part.states(), states, self._first_state),
            (self._part.inputs(), inputs, self._first_input),
        ):
            for index, quantity in enumerate(quantities, start=first):
                numbers[quantity.name] = partial(values.__getitem__, index)
        return numbers


def coordinate_of(mechanism: Mechanism, joint: str) -> int:
    """Return the index of the coordinate of a tree joint with one coordinate."""
    body = mechanism.topology.body_of_joint(joint)
    assert body is not None, joint  # the mechanism was checked when it was made
    (coordinate,) = mechanism.topology.tree[body].coordinates
    return coordinate
