"""Data of a model: named systems, connections, and signals."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Self, Union

from pydantic import BeforeValidator, Discriminator, Field, SerializeAsAny, Tag, model_validator

from hydraulics import Circuit
from mbsfmu.io.part_files import load_parts
from mbsfmu.io.signals import AnySignal
from mbsfmu.model import circuit_kind, mechanism_kind  # noqa: F401 - they register the kinds
from mbsfmu.model.block import BLOCKS, Block
from mbsfmu.model.mechanism import Mechanism, read_json, write_json
from mbsfmu.model.reference_types import Name
from mbsfmu.model.system_kinds import SYSTEM_KINDS, SystemData, SystemKind, kind_name, system_kind
from mbsfmu.modelling import Data, DataError, FrozenMap, Measured, closest_match, word


def _made(data: Any) -> Any:
    """Return the system of a dictionary, with its class selected by type."""
    if not isinstance(data, dict):
        return data
    kind = system_kind(data)
    if kind is not None:
        return data if kind.family is None else kind.family.made(data)
    return BLOCKS.made(data) if "type" in data else data


def _fields_of_kinds() -> str:
    """Return the fields by which kinds are recognised, in words."""
    fields: dict[str, list[str]] = {}
    for kind in SYSTEM_KINDS:
        fields.setdefault(kind.field, []).append(kind.name)
    *others, last = [f"'{field}' (a {' or '.join(names)})" for field, names in fields.items()]
    return f"{', '.join(others)} or {last}"


def _tagged(kind: SystemKind) -> Any:
    """Return the class of a kind's data, serialized with all fields of subclasses."""
    return Annotated[kind.data if kind.family is None else SerializeAsAny[kind.data], Tag(kind.name)]


if TYPE_CHECKING:
    AnySystem = Mechanism | Circuit | Block | SystemData
else:
    AnySystem = Annotated[
        Union[tuple(_tagged(kind) for kind in SYSTEM_KINDS)],  # noqa: UP007
        Discriminator(
            kind_name,
            custom_error_type="system",
            custom_error_message=f"it must have {_fields_of_kinds()}",
        ),
        BeforeValidator(_made),
    ]


_NO_TEXT = r"\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
Text = Annotated[str, word(f"[^{_NO_TEXT}]*", "a text has no control characters and no halves of characters")]
"""Field type of descriptions of FMUs: characters of XML."""


OutputPattern = Annotated[
    str,
    word(
        r"[A-Za-z0-9_.,*?!\[\]-]+",
        "a pattern of names has letters, digits, _ and ., and *, ? and [] as in shells",
    ),
]
"""Patterns of variables that are outputs."""


class ModelData(Data):
    """Systems and the connections between their variables.

    Variable names of connections are not checked here, because they depend on the equations (see `CoupledModel`).

    Attributes
    ----------
    name
        Name of the model; letters, digits, `_` and `-`.
    description
        One line on it.
    systems
        Mechanisms, circuits, blocks and systems of users' own kinds by name.
    connections
        Pairs of `system.variable`: source and target. A source is an output, or a calculated parameter such as
        `mechanism.cylinder.static_force`, which drives a parameter.
    signals
        Signals over time by the input that follows them, as `system.variable`.
    start
        Values at the start by `system.variable`, in the place of those that the parts say: of parameters, of inputs
        that nothing drives, and of states, which take no notice then of parameters that say where they start.
    outputs
        Patterns of the variables that are outputs of its units, in their order, as `boom.angle`, `cylinder.*` or
        `mechanism.*`; none for those that the parts take for such. What is connected is an output in any case.
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
    start: FrozenMap[str, float] = {}
    outputs: tuple[OutputPattern, ...] = ()
    stop_time: Annotated[float, Field(gt=0), Measured("s")] = 10.0
    step: Annotated[float, Field(gt=0), Measured("s")] = 1e-3
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
                raise DataError(f"signal '{reference}' drives no system '{name}'; {closest_match(name, self.systems)}")
        for reference in self.start:
            if (name := reference.partition(".")[0]) not in self.systems:
                raise DataError(f"start: '{reference}' is of no system '{name}'; {closest_match(name, self.systems)}")
            if reference in self.signals:
                raise DataError(f"start: '{reference}' follows a signal, which says where it starts")
        for pattern in self.outputs:
            if self.outputs.count(pattern) > 1:
                raise DataError(f"the output '{pattern}' is given twice")
        return self

    def start_of(self, name: str) -> dict[str, float]:
        """Return the start values of one system, by variable name."""
        owned = ((reference.partition("."), value) for reference, value in self.start.items())
        return {variable: value for (system, _, variable), value in owned if system == name}

    # -- files ----------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, parts: Iterable[str | os.PathLike[str]] = ()) -> Self:
        """Read a model from a JSON file.

        Parameters
        ----------
        path
            The file. No code is run from it.
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
