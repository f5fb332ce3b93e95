"""Identities of data: content keys, origin, JSON form."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError


def plain(value: Any) -> Any:
    """Return mappings, lists, texts and numbers without NumPy types; null for non-finite numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


_CHECKSUM = 32  # bytes of SHA-256


@dataclass(frozen=True)
class Origin:
    """Origin of a model; empty entries are omitted.

    Attributes
    ----------
    version
        Of the model.
    author
        Who made it.
    copyright, license
        What holds for those who take it.
    """

    version: str = ""
    author: str = ""
    copyright: str = ""
    license: str = ""


def content_key(*contents: object) -> str:
    """Return a key of contents, equal on every machine."""
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def sealed(identity: str, content: bytes) -> bytes:
    """Return bytes with a checksum that includes an identity."""
    return hashlib.sha256(identity.encode() + content).digest() + content


def opened(identity: str, saved: bytes) -> bytes:
    """Return the content of sealed bytes.

    Raises
    ------
    InputError
        When they were sealed with another identity, or have been changed since.
    """
    content = saved[_CHECKSUM:]
    if sealed(identity, content) != saved:
        raise InputError("the saved state is refused: it is of another model or formulation, or damaged")
    return content
