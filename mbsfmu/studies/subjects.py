"""Subjects of studies by what is given: a model, or files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mbsfmu.base.errors import InputError
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.io.signals import AnySignal
from mbsfmu.studies.fmu_subject import FmuSubject
from mbsfmu.studies.model_subject import ModelSubject
from mbsfmu.studies.subject import Subject

Given: TypeAlias = CoupledModel | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A model; the path of an FMU, of a package or of a folder with one; FMUs as `[name=]file`."""


def subject_of(
    given: Given, connections: Sequence[str | tuple[str, str]] = (), inputs: Mapping[str, AnySignal] | None = None
) -> Subject:
    """Return the subject; connections and signals of inputs are for FMUs.

    Raises
    ------
    InputError
        When a file cannot be run, or a model is given connections or signals.
    """
    if not isinstance(given, CoupledModel):
        paths = [given] if isinstance(given, (str, os.PathLike)) else list(given)
        return FmuSubject([os.fspath(each) for each in paths], connections, inputs)
    if connections:
        raise InputError(f"the connections of {given.name} are its own; connections are given for FMUs")
    if inputs:
        raise InputError(f"the signals of {given.name} are its own; inputs are given for FMUs")
    return ModelSubject(given)
