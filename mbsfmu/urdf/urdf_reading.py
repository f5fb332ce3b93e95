"""Reading of URDF files; conversion of their names and mimic laws."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import DataError

if TYPE_CHECKING:
    from yourdfpy import URDF


def parsed(path: str | os.PathLike[str]) -> Any:
    """Return the robot of a file from the parser, without meshes.

    Raises
    ------
    InputError
        When the parser is not installed, or the file is no URDF.
    """
    try:
        import yourdfpy  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("reading URDF needs another package: pip install 'mbsfmu[urdf]'") from None
    with open(path, "rb"):  # the parser takes a missing file for one that is no XML
        pass
    try:
        loaded: URDF = yourdfpy.URDF.load(
            os.fspath(path), build_scene_graph=False, load_meshes=False, build_collision_scene_graph=False
        )
    except Exception as error:  # whatever the parser meets
        raise InputError(f"{os.fspath(path)} is no URDF: {' '.join(str(error).split())}") from None
    return loaded.robot


def clean_name(text: str) -> str:
    """Return a valid name: other characters than letters and digits become underscores."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{name}" if not name or name[0].isdigit() else name


def distinct_names(kind: str, given: Iterable[str]) -> dict[str, str]:
    """Return valid names by the names of the file.

    Raises
    ------
    DataError
        If two names would be equal.
    """
    names: dict[str, str] = {}
    for text in given:
        name = clean_name(text)
        if other := next((each for each, taken in names.items() if taken == name), None):
            raise DataError(f"the {kind}s '{other}' and '{text}' would both be called '{name}' here; rename one")
        names[text] = name
    return names


def law_of(mimic: Any) -> tuple[float, float]:
    """Return multiplier and offset of a mimic joint."""
    factor, offset = mimic.multiplier, mimic.offset
    return 1.0 if factor is None else float(factor), 0.0 if offset is None else float(offset)
