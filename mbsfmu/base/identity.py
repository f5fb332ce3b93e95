"""What identifies things: their content, and where they come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mbsfmu.base.errors import InputError

_CHECKSUM = 32  # bytes of SHA-256


@dataclass(frozen=True)
class Origin:
    """Where a model comes from; what is empty is left out.

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
    """Return a name for what is made of these contents: equal ones give the same, on every machine."""
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def sealed(identity: str, content: bytes) -> bytes:
    """Return bytes with a checksum before them, which tells whose they are as well."""
    return hashlib.sha256(identity.encode() + content).digest() + content


def opened(identity: str, saved: bytes) -> bytes:
    """Return the bytes that were sealed.

    Raises
    ------
    InputError
        When they were sealed with another identity, or have been changed since.
    """
    content = saved[_CHECKSUM:]
    if sealed(identity, content) != saved:
        raise InputError("the saved state is refused: it is of another model or formulation, or damaged")
    return content
